import { type Static, Type } from '@sinclair/typebox'
import {
  Component,
  DECIMAL_RULE,
  Decimal,
  Described,
  Nullable,
  TransactionDates,
  TransactionTerms,
  Uuid,
} from './fields.ts'
import { ListEnvelope } from './list.ts'

/** What a transaction does to the number of shares held; undefined where the source is silent. */
export type ShareImpact = '+' | '-' | '='

interface Explanation {
  readonly meaning: string
  readonly impact: ShareImpact | undefined
}

/** The closed list of section 2.4: what each value means and does to the position. */
export const PortfolioTransactionTypes = {
  BUY: { meaning: 'Securities or other assets are bought', impact: '+' },
  COMPENSATION: {
    meaning:
      'The holder is compensated for a corporate event of the asset, for instance with the cash ' +
      'of a forced sale that the sale itself does not state',
    impact: '=',
  },
  COUPON: {
    meaning: 'A bond pays its regular interest, a fixed share of its face value',
    impact: '=',
  },
  DELISTING: { meaning: 'A security is taken off a stock exchange', impact: '-' },
  DIVIDENDS: { meaning: 'A company pays out part of its profit to its owners', impact: '=' },
  EXPIRATION: {
    meaning: 'The source of this contract gives neither its meaning nor its impact',
    impact: undefined,
  },
  INHERITANCE_OR_DONATION_TRANSFER_IN: {
    meaning: 'Assets arrive in the account because they were inherited or donated',
    impact: '+',
  },
  INHERITANCE_OR_DONATION_TRANSFER_OUT: {
    meaning: 'Assets leave for another account because they were inherited or donated',
    impact: '-',
  },
  ISIN_CHANGE_BUY: { meaning: 'Incoming side of a change of ISIN', impact: '+' },
  ISIN_CHANGE_SELL: { meaning: 'Outgoing side of a change of ISIN', impact: '-' },
  MERGER_BUY: { meaning: 'Incoming side of a merger', impact: '+' },
  MERGER_SELL: { meaning: 'Outgoing side of a merger', impact: '-' },
  OFF_MARKET_BUY: {
    meaning:
      'Bought away from a formal exchange, or granted by something that the holder did not do',
    impact: '+',
  },
  OFF_MARKET_SELL: {
    meaning: 'Sold away from a formal exchange, or by something that the holder does not control',
    impact: '-',
  },
  PRODUCT_CHANGE_BUY: {
    meaning:
      'Incoming side of a product change, which alters a trait such as the share class without ' +
      'being a full change of ISIN',
    impact: '+',
  },
  PRODUCT_CHANGE_SELL: { meaning: 'Outgoing side of a product change', impact: '-' },
  RIGHTS_CONVERSION_BUY: {
    meaning: 'Stock received for rights, as a rule in a scrip dividend or a capital increase',
    impact: '+',
  },
  RIGHTS_CONVERSION_SELL: {
    meaning: 'Outgoing side of that conversion: the rights which became shares',
    impact: '-',
  },
  RIGHTS_EXCLUSION: {
    meaning: 'Rights are sold, as a rule because the market no longer admits them',
    impact: '-',
  },
  RIGHTS_ISSUE: {
    meaning: 'Rights are handed out, as a rule for a scrip dividend or a capital increase',
    impact: '+',
  },
  SELL: { meaning: 'Securities or other assets are sold', impact: '-' },
  SHARE_ISSUE_PREMIUM: {
    meaning: 'What comes in above the par value of newly issued shares',
    impact: '=',
  },
  SPINOFF: {
    meaning: 'Shares granted because a subsidiary separates from its parent company',
    impact: '+',
  },
  SPLIT_BUY: { meaning: 'Incoming side of a split', impact: '+' },
  SPLIT_SELL: { meaning: 'Outgoing side of a split', impact: '-' },
  TRANSFER_IN: { meaning: 'Securities are moved into the account', impact: '+' },
  TRANSFER_OUT: { meaning: 'Securities are moved out of the account', impact: '-' },
  UNKNOWN: { meaning: 'Not classified correctly so far', impact: '=' },
} as const satisfies Record<string, Explanation>

const rows = Object.entries<Explanation>(PortfolioTransactionTypes).map(
  ([value, { meaning, impact }]) =>
    `| \`${value}\` | ${impact === undefined ? 'not given' : `\`${impact}\``} | ${meaning} |`,
)

/** One of the values above (section 2.4); its description is their table. */
export const PortfolioTransactionType = Type.Unsafe<keyof typeof PortfolioTransactionTypes>({
  type: 'string',
  enum: Object.keys(PortfolioTransactionTypes),
  title: 'Portfolio transaction type',
  description: [
    'What happened, from a closed list. Shares: `+` adds `titles` to the position, `-` removes',
    'them, `=` leaves the position as it is, and `titles` only tells its size at that time.',
    '',
    'A transaction that cannot be classified when it is first seen is `UNKNOWN` rather than a',
    'guess. Once that is resolved and the credential connects anew, the same `transactionId`',
    'carries the correct type.',
    '',
    '| Value | Shares | Meaning |',
    '|---|---|---|',
    ...rows,
  ].join('\n'),
  examples: ['BUY'],
})
export type PortfolioTransactionType = Static<typeof PortfolioTransactionType>

const RetentionDetail = Type.Object(
  {
    retentionFrom: Described(Decimal, {
      title: 'Retention at the origin',
      description: 'What was retained on the side that pays, as the institution states it.',
      examples: [15],
    }),
    retentionTo: Described(Decimal, {
      title: 'Retention at the destination',
      description: 'What was retained on the side that is paid, as the institution states it.',
      examples: [4],
    }),
  },
  { additionalProperties: false },
)

/**
 * A movement of an investment (section 2.2). Its 26 fields are always present, in this order, and
 * null where they are not known; the two identifiers and the type always are.
 */
export const PortfolioTransaction = Component(
  'PortfolioTransaction',
  Type.Object(
    {
      transactionId: Described(Uuid, {
        title: 'Transaction',
        description:
          'Identifier of the transaction; it stays the same when a field of it is corrected.',
        examples: ['0b6f3c52-8e1d-4a97-b1c4-5d2e7f90a863'],
      }),
      portfolioId: Described(Uuid, {
        title: 'Portfolio',
        description: 'Identifier of the one portfolio that the transaction belongs to.',
        examples: ['7d94b2e8-15fa-4c60-9e3b-a8c1d6024f57'],
      }),
      exchangeRate: TransactionTerms.exchangeRate,
      type: PortfolioTransactionType,
      titles: Nullable(Decimal, {
        title: 'Shares',
        description:
          'Number of shares or other units, fractions included. `type` tells whether they are ' +
          'added, removed, or only the size of the position.',
        examples: [25.5],
      }),
      amount: Nullable(Decimal, {
        title: 'Amount',
        description: 'Money that the transaction moves, in `currency`.',
        examples: [312.38],
      }),
      amountBaseCurrency: Nullable(Decimal, {
        title: 'Amount in the base currency',
        description: 'The same amount in the base currency of the portfolio.',
        examples: [288.12],
      }),
      commission: TransactionTerms.commission,
      taxes: TransactionTerms.taxes,
      currency: TransactionTerms.currency,
      localCurrency: TransactionTerms.localCurrency,
      description: TransactionTerms.description,
      price: Nullable(Decimal, {
        title: 'Price',
        description: 'Price of one share or unit.',
        examples: [12.25],
      }),
      ...TransactionDates,
      investment: TransactionTerms.investment,
      relatedTransaction: Nullable(Uuid, {
        title: 'Related transaction',
        description:
          'The `transactionId` of the transaction that this one goes with, such as the other ' +
          'side of a split.',
        examples: ['e2d70a4c-3b98-4f15-8c6a-91b5f4037d2e'],
      }),
      retentionDetail: Nullable(RetentionDetail, {
        title: 'Retention',
        description:
          'What was retained of a payment. Both members are given, or the whole is null.',
        examples: [{ retentionFrom: 15, retentionTo: 4 }],
      }),
    },
    {
      additionalProperties: false,
      title: 'Portfolio transaction',
      description: [
        'A financial movement of an investment, in one portfolio.',
        'Every field is present; null says that it is not known.',
        DECIMAL_RULE,
        'Signs are those of the institution. The demo data holds magnitudes throughout, and the',
        'direction is in `type`.',
      ].join(' '),
    },
  ),
)
export type PortfolioTransaction = Static<typeof PortfolioTransaction>

/** A page of portfolio transactions (sections 2.1 and 4.1). */
export const PortfolioTransactionList = ListEnvelope(PortfolioTransaction, {
  name: 'PortfolioTransactionList',
  title: 'Portfolio transactions',
  description: 'One page of the portfolio transactions of a connection.',
})
export type PortfolioTransactionList = Static<typeof PortfolioTransactionList>
