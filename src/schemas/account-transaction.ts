import { type Static, Type } from '@sinclair/typebox'
import {
  ClosedList,
  Decimal,
  Described,
  decimalRule,
  nameOf,
  Reference,
  TransactionDates,
  TransactionTerms,
  UNKNOWN_TYPE,
  Uuid,
} from './fields.ts'
import { type List, ListEnvelope } from './list.ts'

/** The closed list of types: each with its meaning. Each of them changes the balance. */
export const AccountTransactionTypes = {
  COUPON: 'Bonds or other fixed-income securities pay interest',
  DEPOSIT: 'The holder pays cash in',
  DIVIDENDS: 'A company pays its shareholders, usually out of its profit',
  DIVIDEND_RETENTION: 'The fund or investment firm keeps dividends instead of paying them out',
  DIVIDEND_RETENTION_REFUND: 'Dividends kept earlier are paid after all',
  FEES: 'The institution charges for a service, such as management or a transaction',
  FEES_REFUND: 'Fees charged earlier are given back',
  FOREX_DEPOSIT: 'Cash comes in from a currency exchange',
  FOREX_WITHDRAWAL: 'Cash goes out for a currency exchange',
  GIFT: 'The institution gives cash away, for example in a promotion',
  INTEREST: 'An account or an investment earns interest',
  INTEREST_CHARGE: 'Interest is charged, usually on a loan or on borrowed money',
  RETURN_ON_CAPITAL: 'Part of the invested money comes back; neither income nor a capital gain',
  TAXES: 'Money is taken for taxes',
  TAX_REFUND: 'Taxes paid earlier are given back',
  WITHDRAWAL: 'The holder takes cash out',
  UNKNOWN: 'Not classified correctly so far',
} as const

const AccountTransactionType = ClosedList(
  AccountTransactionTypes,
  String,
  `Reason why the cash balance changed, from a closed list. ${UNKNOWN_TYPE}`,
  { $id: 'AccountTransactionType' },
)

/** A movement of cash, with its fields in this order. */
function accountTransaction(exact: boolean) {
  const { investment, ...costs } = TransactionTerms(exact)
  return Type.Object(
    {
      movementId: Described(Uuid, 'Identifier, which does not change when a field is corrected.'),
      accountId: Described(
        Uuid,
        'Identifier of the account whose balance the transaction changes.',
      ),
      type: Reference(AccountTransactionType),
      amount: Described(
        Decimal(exact),
        'Change of the cash balance, in `currency`: positive for cash in, negative for cash out.',
      ),
      ...costs,
      ...TransactionDates,
      investment,
    },
    {
      $id: nameOf('AccountTransaction', exact),
      description:
        'A movement of cash in one account. Every field is present; null means unknown. ' +
        `Signs are the institution’s. ${decimalRule(exact)}`,
    },
  )
}

const item = accountTransaction(false)
const exactItem = accountTransaction(true)
export type AccountTransaction = Static<typeof item>

const PAGE = 'One page of the account transactions of a connection.'

/** Sections 2.1 and 4.2. */
export const AccountTransactions = {
  name: 'account-transactions',
  table: 'account_transaction',
  id: 'movementId',
  item,
  response: ListEnvelope(item, PAGE),
  exact: {
    item: exactItem,
    response: ListEnvelope(exactItem, PAGE),
  },
  dates: ['operationDateDay', 'valueDateDay'],
  hidden: {},
  revision: 1,
  hasChanges: true,
} as const satisfies List
