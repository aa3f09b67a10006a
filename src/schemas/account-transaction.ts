import { type Static, Type } from '@sinclair/typebox'
import {
  Component,
  DECIMAL_RULE,
  Decimal,
  Described,
  TransactionDates,
  TransactionTerms,
  Uuid,
} from './fields.ts'
import { ListEnvelope } from './list.ts'

interface Explanation {
  readonly meaning: string
}

/** The closed list of section 2.5: what each value means. Each of them changes the balance. */
export const AccountTransactionTypes = {
  COUPON: { meaning: 'Bonds or other fixed-income securities pay interest' },
  DEPOSIT: { meaning: 'The holder pays cash in' },
  DIVIDENDS: { meaning: 'A company pays its shareholders, as a rule out of its profit' },
  DIVIDEND_RETENTION: {
    meaning: 'Dividends that the fund or investment firm keeps back instead of paying them out',
  },
  DIVIDEND_RETENTION_REFUND: { meaning: 'Dividends kept back earlier are paid after all' },
  FEES: {
    meaning:
      'The institution charges for its services, such as management or a transaction; the ' +
      'commission of a connection to an exchange may be among them',
  },
  FEES_REFUND: { meaning: 'Fees charged earlier are given back' },
  FOREX_DEPOSIT: { meaning: 'Cash comes in from a currency exchange' },
  FOREX_WITHDRAWAL: { meaning: 'Cash goes out for a currency exchange' },
  GIFT: { meaning: 'The institution gives cash away, in a promotion for example' },
  INTEREST: { meaning: 'An account or an investment that bears interest earns it' },
  INTEREST_CHARGE: { meaning: 'Interest is charged, as a rule on a loan or on borrowed money' },
  RETURN_ON_CAPITAL: {
    meaning: 'Part of the money once invested comes back; neither income nor a capital gain',
  },
  TAXES: { meaning: 'Money is taken for taxes' },
  TAX_REFUND: { meaning: 'Taxes paid earlier are given back' },
  WITHDRAWAL: { meaning: 'The holder takes cash out' },
  UNKNOWN: { meaning: 'Not classified correctly so far' },
} as const satisfies Record<string, Explanation>

const rows = Object.entries<Explanation>(AccountTransactionTypes).map(
  ([value, { meaning }]) => `| \`${value}\` | ${meaning} |`,
)

/** One of the values above (section 2.5); its description is their table. */
export const AccountTransactionType = Type.Unsafe<keyof typeof AccountTransactionTypes>({
  type: 'string',
  enum: Object.keys(AccountTransactionTypes),
  title: 'Account transaction type',
  description: [
    'Why the cash balance changed, from a closed list.',
    '',
    'A transaction that cannot be classified when it is first seen is `UNKNOWN` rather than a',
    'guess. Once that is resolved and the credential connects anew, the same `movementId`',
    'carries the correct type.',
    '',
    '| Value | Meaning |',
    '|---|---|',
    ...rows,
  ].join('\n'),
  examples: ['DEPOSIT'],
})
export type AccountTransactionType = Static<typeof AccountTransactionType>

/**
 * A movement of cash (section 2.3). Its 21 fields are always present, in this order, and null where
 * they are not known; the two identifiers, the type and the amount always are.
 */
export const AccountTransaction = Component(
  'AccountTransaction',
  Type.Object(
    {
      movementId: Described(Uuid, {
        title: 'Movement',
        description:
          'Identifier of the transaction; it stays the same when a field of it is corrected.',
        examples: ['94c1f7a0-2e6d-4835-a7b9-0c3d5e8f1264'],
      }),
      accountId: Described(Uuid, {
        title: 'Account',
        description: 'Identifier of the one account whose balance the transaction changes.',
        examples: ['3a58e1d9-c047-4b2f-86d5-f19e7b20c4a3'],
      }),
      type: AccountTransactionType,
      amount: Described(Decimal, {
        title: 'Amount',
        description:
          'Change of the cash balance, in `currency`: positive when cash comes in to the holder, ' +
          'negative when it goes out. An institution’s own sign is passed through unchanged.',
        examples: [-49.9],
      }),
      exchangeRate: TransactionTerms.exchangeRate,
      commission: TransactionTerms.commission,
      taxes: TransactionTerms.taxes,
      currency: TransactionTerms.currency,
      localCurrency: TransactionTerms.localCurrency,
      description: TransactionTerms.description,
      ...TransactionDates,
      investment: TransactionTerms.investment,
    },
    {
      additionalProperties: false,
      title: 'Account transaction',
      description: [
        'A financial movement of cash, in one account; it always changes the balance.',
        'Every field is present; null says that it is not known.',
        DECIMAL_RULE,
      ].join(' '),
    },
  ),
)
export type AccountTransaction = Static<typeof AccountTransaction>

/** A page of account transactions (sections 2.1 and 4.2). */
export const AccountTransactionList = ListEnvelope(AccountTransaction, {
  name: 'AccountTransactionList',
  title: 'Account transactions',
  description: 'One page of the account transactions of a connection.',
})
export type AccountTransactionList = Static<typeof AccountTransactionList>
