import { type Static, Type } from '@sinclair/typebox'

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
