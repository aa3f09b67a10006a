declare const decimal: unique symbol

/**
 * Exact decimal as text, such as `-406.20`: up to 38 digits before the point and 38 after it, without an
 * exponent. Give it to a decimal library or to a `numeric` column. `Number()` would round it.
 */
export type Decimal = string & { readonly [decimal]: never }

/** Effect of a portfolio transaction on the position, by its type. */
const EFFECTS = {
  BUY: '+',
  COMPENSATION: '=',
  COUPON: '=',
  DELISTING: '-',
  DIVIDENDS: '=',
  EXPIRATION: undefined,
  INHERITANCE_OR_DONATION_TRANSFER_IN: '+',
  INHERITANCE_OR_DONATION_TRANSFER_OUT: '-',
  ISIN_CHANGE_BUY: '+',
  ISIN_CHANGE_SELL: '-',
  MERGER_BUY: '+',
  MERGER_SELL: '-',
  OFF_MARKET_BUY: '+',
  OFF_MARKET_SELL: '-',
  PRODUCT_CHANGE_BUY: '+',
  PRODUCT_CHANGE_SELL: '-',
  RIGHTS_CONVERSION_BUY: '+',
  RIGHTS_CONVERSION_SELL: '-',
  RIGHTS_EXCLUSION: '-',
  RIGHTS_ISSUE: '+',
  SELL: '-',
  SHARE_ISSUE_PREMIUM: '=',
  SPINOFF: '+',
  SPLIT_BUY: '+',
  SPLIT_SELL: '-',
  TRANSFER_IN: '+',
  TRANSFER_OUT: '-',
  UNKNOWN: '=',
} as const

/** `+` adds `titles` to the position, `-` removes them; with `=` they are the size of the position. */
export type PositionEffect = '+' | '-' | '='

/** Returns the effect of a type on the position; undefined for EXPIRATION and for unknown types. */
export function positionEffect(type: string): PositionEffect | undefined {
  return Object.hasOwn(EFFECTS, type) ? EFFECTS[type as keyof typeof EFFECTS] : undefined
}

/** A text that later versions of the service may add to a list. Editors still complete the known ones. */
type Other = string & {}

/** Type of a portfolio transaction. Later versions of the service may add values. */
export type PortfolioTransactionType = keyof typeof EFFECTS | Other

/** Type of an account transaction. Later versions of the service may add values. */
export type AccountTransactionType =
  | 'COUPON'
  | 'DEPOSIT'
  | 'DIVIDENDS'
  | 'DIVIDEND_RETENTION'
  | 'DIVIDEND_RETENTION_REFUND'
  | 'FEES'
  | 'FEES_REFUND'
  | 'FOREX_DEPOSIT'
  | 'FOREX_WITHDRAWAL'
  | 'GIFT'
  | 'INTEREST'
  | 'INTEREST_CHARGE'
  | 'RETURN_ON_CAPITAL'
  | 'TAXES'
  | 'TAX_REFUND'
  | 'WITHDRAWAL'
  | 'UNKNOWN'
  | Other

/** Calendar days as YYYY-MM-DD. `operationDateDay` or `valueDateDay` is known. */
interface TransactionDates {
  operationDateDay: string | null
  originalOperationDateDay: string | null
  valueDateDay: string | null
  originalValueDateDay: string | null
  operationDateHour: string | null
  originalOperationDateHour: string | null
  valueDateHour: string | null
  originalValueDateHour: string | null
  originalOperationDateTz: string | null
  originalValueDateTz: string | null
}

interface TransactionTerms {
  exchangeRate: Decimal | null
  commission: Decimal | null
  taxes: Decimal | null
  currency: string | null
  localCurrency: string | null
  description: string | null
  investment: string | null
}

/** Movement of an investment in a portfolio. Every field is present; null means unknown. */
export interface PortfolioTransaction extends TransactionDates, TransactionTerms {
  transactionId: string
  portfolioId: string
  type: PortfolioTransactionType
  titles: Decimal | null
  amount: Decimal | null
  amountBaseCurrency: Decimal | null
  price: Decimal | null
  relatedTransaction: string | null
  retentionDetail: { retentionFrom: Decimal; retentionTo: Decimal } | null
}

/** Movement of cash in an account. Every field is present; null means unknown. */
export interface AccountTransaction extends TransactionDates, TransactionTerms {
  movementId: string
  accountId: string
  type: AccountTransactionType
  amount: Decimal
}

/** Company with its Spanish tax identification code. */
export interface Company {
  name: string
  cif: string
}

/** Completed order to transfer assets. Every field is present; null means unknown. */
export interface AssetsTransferOrder {
  id: string
  portfolio: string | null
  investment: string | null
  name: string | null
  isin: string | null
  currency: string | null
  assetType: string | null
  titles: Decimal | null
  amount: Decimal | null
  total: boolean | null
  marketer: Company | null
  managementCompany: Company | null
}
