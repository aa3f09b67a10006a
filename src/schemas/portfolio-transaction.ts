import { type Static, Type } from '@sinclair/typebox'
import {
  ClosedList,
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

interface TransactionType {
  readonly meaning: string
  /** Effect on the number of shares held; undefined if the specification does not define it. */
  readonly impact: '+' | '-' | '=' | undefined
}

/** The closed list of section 2.4: each type with its meaning and its effect on the position. */
export const PortfolioTransactionTypes = {
  BUY: { meaning: 'Securities or other assets are bought', impact: '+' },
  COMPENSATION: {
    meaning:
      'The holder is compensated for a corporate event of the asset, for example with cash from ' +
      'a forced sale that the sale itself does not state',
    impact: '=',
  },
  COUPON: {
    meaning: 'A bond pays its regular interest, a fixed share of its face value',
    impact: '=',
  },
  DELISTING: { meaning: 'A security leaves a stock exchange', impact: '-' },
  DIVIDENDS: { meaning: 'A company pays out part of its profit to its owners', impact: '=' },
  EXPIRATION: {
    meaning: 'The source of this contract defines neither the meaning nor the effect',
    impact: undefined,
  },
  INHERITANCE_OR_DONATION_TRANSFER_IN: {
    meaning: 'Inherited or donated assets arrive in the account',
    impact: '+',
  },
  INHERITANCE_OR_DONATION_TRANSFER_OUT: {
    meaning: 'Inherited or donated assets leave for another account',
    impact: '-',
  },
  ISIN_CHANGE_BUY: { meaning: 'Incoming side of a change of ISIN', impact: '+' },
  ISIN_CHANGE_SELL: { meaning: 'Outgoing side of a change of ISIN', impact: '-' },
  MERGER_BUY: { meaning: 'Incoming side of a merger', impact: '+' },
  MERGER_SELL: { meaning: 'Outgoing side of a merger', impact: '-' },
  OFF_MARKET_BUY: {
    meaning: 'Bought outside a formal exchange, or granted without an action of the holder',
    impact: '+',
  },
  OFF_MARKET_SELL: {
    meaning: 'Sold outside a formal exchange, or by an event outside the holder’s control',
    impact: '-',
  },
  PRODUCT_CHANGE_BUY: {
    meaning:
      'Incoming side of a product change: a trait such as the share class changes, without a ' +
      'full change of ISIN',
    impact: '+',
  },
  PRODUCT_CHANGE_SELL: { meaning: 'Outgoing side of a product change', impact: '-' },
  RIGHTS_CONVERSION_BUY: {
    meaning: 'Stock received for rights, usually in a scrip dividend or a capital increase',
    impact: '+',
  },
  RIGHTS_CONVERSION_SELL: {
    meaning: 'Outgoing side of that conversion: the rights that became shares',
    impact: '-',
  },
  RIGHTS_EXCLUSION: {
    meaning: 'Rights are sold, usually because the market no longer admits them',
    impact: '-',
  },
  RIGHTS_ISSUE: {
    meaning: 'Rights are granted, usually for a scrip dividend or a capital increase',
    impact: '+',
  },
  SELL: { meaning: 'Securities or other assets are sold', impact: '-' },
  SHARE_ISSUE_PREMIUM: {
    meaning: 'Amount above the par value of newly issued shares',
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
} as const satisfies Record<string, TransactionType>

/** Type of a portfolio transaction (section 2.4). */
export const PortfolioTransactionType = ClosedList(PortfolioTransactionTypes, {
  title: 'Portfolio transaction type',
  description: [
    'Type of the movement, from a closed list. Shares: `+` adds `titles` to the position, `-`',
    'removes them. `=` does not change the position; `titles` is then its size at that time.',
    '',
    'A transaction that cannot be classified at first has the type `UNKNOWN`. When the cause is',
    'resolved and the credential connects again, the same `transactionId` has the correct type.',
  ].join('\n'),
  columns: {
    Shares: ({ impact }) => (impact ? `\`${impact}\`` : 'not defined'),
    Meaning: ({ meaning }) => meaning,
  },
  examples: ['BUY'],
})
export type PortfolioTransactionType = Static<typeof PortfolioTransactionType>

const RetentionDetail = Type.Object(
  {
    retentionFrom: Described(Decimal, {
      title: 'Retention at the origin',
      description: 'Amount retained on the paying side, as the institution states it.',
      examples: [15],
    }),
    retentionTo: Described(Decimal, {
      title: 'Retention at the destination',
      description: 'Amount retained on the receiving side, as the institution states it.',
      examples: [4],
    }),
  },
  { additionalProperties: false },
)

const { exchangeRate, investment, ...costs } = TransactionTerms

/**
 * A movement of an investment (section 2.2). Its 26 fields are always present, in this order. Unknown
 * fields are null; the two identifiers and the type are never null.
 */
export const PortfolioTransaction = Component(
  'PortfolioTransaction',
  Type.Object(
    {
      transactionId: Described(Uuid, {
        title: 'Transaction',
        description: 'Identifier of the transaction. It does not change when a field is corrected.',
        examples: ['0b6f3c52-8e1d-4a97-b1c4-5d2e7f90a863'],
      }),
      portfolioId: Described(Uuid, {
        title: 'Portfolio',
        description: 'Identifier of the portfolio that the transaction belongs to.',
        examples: ['7d94b2e8-15fa-4c60-9e3b-a8c1d6024f57'],
      }),
      exchangeRate,
      type: PortfolioTransactionType,
      titles: Nullable(Decimal, {
        title: 'Shares',
        description:
          'Number of shares or other units, with fractions. `type` defines the effect on the ' +
          'position: added, removed, or only its size.',
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
      ...costs,
      price: Nullable(Decimal, {
        title: 'Price',
        description: 'Price of one share or unit.',
        examples: [12.25],
      }),
      ...TransactionDates,
      investment,
      relatedTransaction: Nullable(Uuid, {
        title: 'Related transaction',
        description:
          '`transactionId` of a transaction that belongs with this one, such as the other side of ' +
          'a split.',
        examples: ['e2d70a4c-3b98-4f15-8c6a-91b5f4037d2e'],
      }),
      retentionDetail: Nullable(RetentionDetail, {
        title: 'Retention',
        description: 'Amounts retained from a payment: both, or null.',
        examples: [{ retentionFrom: 15, retentionTo: 4 }],
      }),
    },
    {
      additionalProperties: false,
      title: 'Portfolio transaction',
      description:
        'A movement of an investment in one portfolio. Every field is present; null means ' +
        `unknown. ${DECIMAL_RULE} Signs are the institution’s. In the sample data all numbers are ` +
        'positive; `type` defines the direction.',
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
