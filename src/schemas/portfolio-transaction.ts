import { type Static, Type } from '@sinclair/typebox'
import {
  ClosedList,
  Decimal,
  Described,
  decimalRule,
  Nullable,
  nameOf,
  Reference,
  TransactionDates,
  TransactionTerms,
  UNKNOWN_TYPE,
  Uuid,
} from './fields.ts'
import { type List, ListEnvelope } from './list.ts'

/** Effect on the number of shares held; undefined if the specification does not define it. */
type Impact = '+' | '-' | '=' | undefined

/** The closed list of types: each with its effect on the position and its meaning. */
export const PortfolioTransactionTypes = {
  BUY: ['+', 'Securities or other assets are bought'],
  COMPENSATION: ['=', 'Compensation for a corporate event, such as the cash of a forced sale'],
  COUPON: ['=', 'A bond pays its regular interest, a fixed share of its face value'],
  DELISTING: ['-', 'A security leaves a stock exchange'],
  DIVIDENDS: ['=', 'A company pays out part of its profit to its owners'],
  EXPIRATION: [undefined, 'The source of this contract defines neither meaning nor effect'],
  INHERITANCE_OR_DONATION_TRANSFER_IN: ['+', 'Inherited or donated assets arrive in the account'],
  INHERITANCE_OR_DONATION_TRANSFER_OUT: ['-', 'Inherited or donated assets leave the account'],
  ISIN_CHANGE_BUY: ['+', 'Incoming side of a change of ISIN'],
  ISIN_CHANGE_SELL: ['-', 'Outgoing side of a change of ISIN'],
  MERGER_BUY: ['+', 'Incoming side of a merger'],
  MERGER_SELL: ['-', 'Outgoing side of a merger'],
  OFF_MARKET_BUY: ['+', 'Bought outside an exchange, or granted without an action of the holder'],
  OFF_MARKET_SELL: ['-', 'Sold outside an exchange, or by an event outside the holder’s control'],
  PRODUCT_CHANGE_BUY: [
    '+',
    'Incoming side of a product change, such as of the share class, without a full change of ISIN',
  ],
  PRODUCT_CHANGE_SELL: ['-', 'Outgoing side of a product change'],
  RIGHTS_CONVERSION_BUY: [
    '+',
    'Stock for rights, usually of a scrip dividend or a capital increase',
  ],
  RIGHTS_CONVERSION_SELL: ['-', 'Outgoing side of that conversion: the rights that became shares'],
  RIGHTS_EXCLUSION: ['-', 'Rights are sold, usually because the market no longer admits them'],
  RIGHTS_ISSUE: ['+', 'Rights are granted, usually for a scrip dividend or a capital increase'],
  SELL: ['-', 'Securities or other assets are sold'],
  SHARE_ISSUE_PREMIUM: ['=', 'Amount above the par value of newly issued shares'],
  SPINOFF: ['+', 'Shares granted because a subsidiary separates from its parent company'],
  SPLIT_BUY: ['+', 'Incoming side of a split'],
  SPLIT_SELL: ['-', 'Outgoing side of a split'],
  TRANSFER_IN: ['+', 'Securities are moved into the account'],
  TRANSFER_OUT: ['-', 'Securities are moved out of the account'],
  UNKNOWN: ['=', 'Not classified correctly so far'],
} as const satisfies Record<string, readonly [Impact, meaning: string]>

const impacts = Object.entries(PortfolioTransactionTypes).map(([type, [impact]]) => {
  return [type, impact ?? null]
})

const PortfolioTransactionType = ClosedList(
  PortfolioTransactionTypes,
  ([impact, meaning]) => (impact ? `(${impact}) ${meaning}` : meaning),
  'Type of the movement, from a closed list. `+` adds `titles` to the position, `-` removes them. ' +
    `\`=\` does not change the position; \`titles\` is then its size. ${UNKNOWN_TYPE}`,
  { $id: 'PortfolioTransactionType', 'x-share-impact': Object.fromEntries(impacts) },
)

/** Both members of a retention. */
function RetentionDetail(exact: boolean) {
  return Type.Object(
    {
      retentionFrom: Described(Decimal(exact), 'Amount retained on the paying side.'),
      retentionTo: Described(Decimal(exact), 'Amount retained on the receiving side.'),
    },
    {
      $id: nameOf('RetentionDetail', exact),
      description: 'Amounts retained from a payment. Both are always present.',
    },
  )
}

/** A movement of an investment, with its fields in this order. */
function portfolioTransaction(exact: boolean) {
  const { exchangeRate, investment, ...costs } = TransactionTerms(exact)
  return Type.Object(
    {
      transactionId: Described(
        Uuid,
        'Identifier, which does not change when a field is corrected.',
      ),
      portfolioId: Described(Uuid, 'Identifier of the portfolio that the transaction belongs to.'),
      exchangeRate,
      type: Reference(PortfolioTransactionType),
      titles: Nullable(
        Decimal(exact),
        'Shares or other units, with fractions; see `type` for the effect.',
      ),
      amount: Nullable(Decimal(exact), 'Money that the transaction moves, in `currency`.'),
      amountBaseCurrency: Nullable(
        Decimal(exact),
        'The same amount in the base currency of the portfolio.',
      ),
      ...costs,
      price: Nullable(
        Decimal(exact),
        'Price as the institution quotes it, for example in per cent or in pence.',
      ),
      ...TransactionDates,
      investment,
      relatedTransaction: Nullable(
        Uuid,
        '`transactionId` of a transaction that belongs with it, such as the other side of a split.',
      ),
      retentionDetail: Nullable(
        RetentionDetail(exact),
        'Amounts retained from a payment: both, or null.',
      ),
    },
    {
      $id: nameOf('PortfolioTransaction', exact),
      description:
        'A movement of an investment in one portfolio. Every field is present; null means ' +
        `unknown. ${decimalRule(exact)} Signs are the institution’s. In the sample data all numbers are ` +
        'positive; `type` defines the direction.',
    },
  )
}

const item = portfolioTransaction(false)
const exactItem = portfolioTransaction(true)
export type PortfolioTransaction = Static<typeof item>

const PAGE = 'One page of the portfolio transactions of a connection.'

/** Sections 2.1 and 4.1. */
export const PortfolioTransactions = {
  name: 'portfolio-transactions',
  table: 'portfolio_transaction',
  id: 'transactionId',
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
