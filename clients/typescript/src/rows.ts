// Made from docs/reference/openapi.json by `npm run docs:renew`. Do not edit.
import type { Decimal, OtherText } from './texts.ts'

/**
 * Type of the movement, from a closed list. `+` adds `titles` to the position, `-` removes them.
 * `=` does not change the position; `titles` is then its size. A transaction that cannot be
 * classified at first has the type `UNKNOWN`. When the cause is resolved and the credential
 * connects again, the same row has the correct type. The client keeps other texts, too.
 */
export type PortfolioTransactionType =
  | 'BUY'
  | 'COMPENSATION'
  | 'COUPON'
  | 'DELISTING'
  | 'DIVIDENDS'
  | 'EXPIRATION'
  | 'INHERITANCE_OR_DONATION_TRANSFER_IN'
  | 'INHERITANCE_OR_DONATION_TRANSFER_OUT'
  | 'ISIN_CHANGE_BUY'
  | 'ISIN_CHANGE_SELL'
  | 'MERGER_BUY'
  | 'MERGER_SELL'
  | 'OFF_MARKET_BUY'
  | 'OFF_MARKET_SELL'
  | 'PRODUCT_CHANGE_BUY'
  | 'PRODUCT_CHANGE_SELL'
  | 'RIGHTS_CONVERSION_BUY'
  | 'RIGHTS_CONVERSION_SELL'
  | 'RIGHTS_EXCLUSION'
  | 'RIGHTS_ISSUE'
  | 'SELL'
  | 'SHARE_ISSUE_PREMIUM'
  | 'SPINOFF'
  | 'SPLIT_BUY'
  | 'SPLIT_SELL'
  | 'TRANSFER_IN'
  | 'TRANSFER_OUT'
  | 'UNKNOWN'
  | OtherText

/**
 * Reason why the cash balance changed, from a closed list. A transaction that cannot be classified
 * at first has the type `UNKNOWN`. When the cause is resolved and the credential connects again,
 * the same row has the correct type. The client keeps other texts, too.
 */
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
  | OtherText

/** Effect of a portfolio transaction on the position, by its type. */
export const EFFECTS = {
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

/** Amounts retained from a payment. Both are always present. */
export interface RetentionDetail {
  /** Amount retained on the paying side. */
  retentionFrom: Decimal
  /** Amount retained on the receiving side. */
  retentionTo: Decimal
}

/** A company. Both members are always present. */
export interface Company {
  /** Name of the company. */
  name: string
  /** Tax identification code of the company. */
  cif: string
}

/**
 * A movement of an investment in one portfolio. Every field is present; null means unknown. Signs
 * are the institution’s. In the sample data all numbers are positive; `type` defines the direction.
 */
export interface PortfolioTransaction {
  /** Identifier, which does not change when a field is corrected. */
  transactionId: string
  /** Identifier of the portfolio that the transaction belongs to. */
  portfolioId: string
  /**
   * Rate between two currencies. The divisor is not defined: compare the amounts before you
   * convert.
   */
  exchangeRate: Decimal | null
  /** Type of the movement, from a closed list. */
  type: PortfolioTransactionType
  /** Shares or other units, with fractions; see `type` for the effect. */
  titles: Decimal | null
  /** Money that the transaction moves, in `currency`. */
  amount: Decimal | null
  /** The same amount in the base currency of the portfolio. */
  amountBaseCurrency: Decimal | null
  /** Charge, in `currency`. It is negative at some institutions. */
  commission: Decimal | null
  /** Taxes, in `currency`. They are negative at some institutions. */
  taxes: Decimal | null
  /**
   * Currency of the amounts: usually ISO 4217, otherwise the institution’s code (GBX for pence).
   */
  currency: string | null
  /** Second currency, for example that of the quoted price. */
  localCurrency: string | null
  /** Text of the institution, in its language. */
  description: string | null
  /** Price as the institution quotes it, for example in per cent or in pence. */
  price: Decimal | null
  /**
   * Day of the transaction. Lists are sorted by it. Null only if `valueDateDay` is known. Format:
   * YYYY-MM-DD.
   */
  operationDateDay: string | null
  /** Operation date in `originalOperationDateTz`. Format: YYYY-MM-DD. */
  originalOperationDateDay: string | null
  /**
   * First day in the position or the balance. Lists sort by it if there is no operation date.
   * Format: YYYY-MM-DD.
   */
  valueDateDay: string | null
  /** Value date in `originalValueDateTz`. Format: YYYY-MM-DD. */
  originalValueDateDay: string | null
  /**
   * Time of day on `operationDateDay`: HH:mm or HH:mm:ss, with a fraction or without. Old rows may
   * have other texts.
   */
  operationDateHour: string | null
  /**
   * Time of day on `originalOperationDateDay`: HH:mm or HH:mm:ss, with a fraction or without. Old
   * rows may have other texts.
   */
  originalOperationDateHour: string | null
  /**
   * Time of day on `valueDateDay`: HH:mm or HH:mm:ss, with a fraction or without. Old rows may have
   * other texts.
   */
  valueDateHour: string | null
  /**
   * Time of day on `originalValueDateDay`: HH:mm or HH:mm:ss, with a fraction or without. Old rows
   * may have other texts.
   */
  originalValueDateHour: string | null
  /** Time zone of the original operation fields, usually an IANA name. */
  originalOperationDateTz: string | null
  /** Time zone of the original value fields, usually an IANA name. */
  originalValueDateTz: string | null
  /** Identifier of the investment that the transaction concerns. */
  investment: string | null
  /** `transactionId` of a transaction that belongs with it, such as the other side of a split. */
  relatedTransaction: string | null
  /** Amounts retained from a payment: both, or null. */
  retentionDetail: RetentionDetail | null
}

/**
 * A movement of cash in one account. Every field is present; null means unknown. Signs are the
 * institution’s.
 */
export interface AccountTransaction {
  /** Identifier, which does not change when a field is corrected. */
  movementId: string
  /** Identifier of the account whose balance the transaction changes. */
  accountId: string
  /** Reason why the cash balance changed, from a closed list. */
  type: AccountTransactionType
  /** Change of the cash balance, in `currency`: positive for cash in, negative for cash out. */
  amount: Decimal
  /**
   * Rate between two currencies. The divisor is not defined: compare the amounts before you
   * convert.
   */
  exchangeRate: Decimal | null
  /** Charge, in `currency`. It is negative at some institutions. */
  commission: Decimal | null
  /** Taxes, in `currency`. They are negative at some institutions. */
  taxes: Decimal | null
  /**
   * Currency of the amounts: usually ISO 4217, otherwise the institution’s code (GBX for pence).
   */
  currency: string | null
  /** Second currency, for example that of the quoted price. */
  localCurrency: string | null
  /** Text of the institution, in its language. */
  description: string | null
  /**
   * Day of the transaction. Lists are sorted by it. Null only if `valueDateDay` is known. Format:
   * YYYY-MM-DD.
   */
  operationDateDay: string | null
  /** Operation date in `originalOperationDateTz`. Format: YYYY-MM-DD. */
  originalOperationDateDay: string | null
  /**
   * First day in the position or the balance. Lists sort by it if there is no operation date.
   * Format: YYYY-MM-DD.
   */
  valueDateDay: string | null
  /** Value date in `originalValueDateTz`. Format: YYYY-MM-DD. */
  originalValueDateDay: string | null
  /**
   * Time of day on `operationDateDay`: HH:mm or HH:mm:ss, with a fraction or without. Old rows may
   * have other texts.
   */
  operationDateHour: string | null
  /**
   * Time of day on `originalOperationDateDay`: HH:mm or HH:mm:ss, with a fraction or without. Old
   * rows may have other texts.
   */
  originalOperationDateHour: string | null
  /**
   * Time of day on `valueDateDay`: HH:mm or HH:mm:ss, with a fraction or without. Old rows may have
   * other texts.
   */
  valueDateHour: string | null
  /**
   * Time of day on `originalValueDateDay`: HH:mm or HH:mm:ss, with a fraction or without. Old rows
   * may have other texts.
   */
  originalValueDateHour: string | null
  /** Time zone of the original operation fields, usually an IANA name. */
  originalOperationDateTz: string | null
  /** Time zone of the original value fields, usually an IANA name. */
  originalValueDateTz: string | null
  /** Identifier of the investment that the transaction concerns. */
  investment: string | null
}

/**
 * An order to transfer assets that the user completed. Every field is present; null means unknown.
 */
export interface AssetsTransferOrder {
  /** Identifier of the order. */
  id: string
  /** Portfolio of the assets, by its name or number in the order. */
  portfolio: string | null
  /** Identifier of the investment to transfer. */
  investment: string | null
  /** Name of the asset to transfer. */
  name: string | null
  /** ISIN of the asset (ISO 6166). */
  isin: string | null
  /** Currency of `amount`, usually an ISO 4217 code. */
  currency: string | null
  /** Type of asset: STOCK, ETF, RIGHTS, FUND, PP, BOND or WARRANT. Others may follow. */
  assetType: string | null
  /** Number of shares or other units to transfer, with fractions. */
  titles: Decimal | null
  /** Value to transfer, in `currency`. */
  amount: Decimal | null
  /** True for the whole position, false for a part of it. */
  total: boolean | null
  /** Company that markets the asset. */
  marketer: Company | null
  /** Company that manages the asset. */
  managementCompany: Company | null
}

/** Column of a view of a copy: path of the field in the row, and name of the column. */
export interface Column {
  path: string
  name: string
  kind: 'text' | 'boolean' | 'decimal'
}

/** Columns of each view, after `connection`, `id` and `row`. */
export const COLUMNS = {
  portfolio_transactions: [
    { path: 'transactionId', name: 'transactionId', kind: 'text' },
    { path: 'portfolioId', name: 'portfolioId', kind: 'text' },
    { path: 'type', name: 'type', kind: 'text' },
    { path: 'titles', name: 'titles', kind: 'decimal' },
    { path: 'amount', name: 'amount', kind: 'decimal' },
    { path: 'amountBaseCurrency', name: 'amountBaseCurrency', kind: 'decimal' },
    { path: 'price', name: 'price', kind: 'decimal' },
    { path: 'exchangeRate', name: 'exchangeRate', kind: 'decimal' },
    { path: 'commission', name: 'commission', kind: 'decimal' },
    { path: 'taxes', name: 'taxes', kind: 'decimal' },
    { path: 'currency', name: 'currency', kind: 'text' },
    { path: 'localCurrency', name: 'localCurrency', kind: 'text' },
    { path: 'description', name: 'description', kind: 'text' },
    { path: 'operationDateDay', name: 'operationDateDay', kind: 'text' },
    { path: 'originalOperationDateDay', name: 'originalOperationDateDay', kind: 'text' },
    { path: 'valueDateDay', name: 'valueDateDay', kind: 'text' },
    { path: 'originalValueDateDay', name: 'originalValueDateDay', kind: 'text' },
    { path: 'operationDateHour', name: 'operationDateHour', kind: 'text' },
    { path: 'originalOperationDateHour', name: 'originalOperationDateHour', kind: 'text' },
    { path: 'valueDateHour', name: 'valueDateHour', kind: 'text' },
    { path: 'originalValueDateHour', name: 'originalValueDateHour', kind: 'text' },
    { path: 'originalOperationDateTz', name: 'originalOperationDateTz', kind: 'text' },
    { path: 'originalValueDateTz', name: 'originalValueDateTz', kind: 'text' },
    { path: 'investment', name: 'investment', kind: 'text' },
    { path: 'relatedTransaction', name: 'relatedTransaction', kind: 'text' },
    { path: 'retentionDetail.retentionFrom', name: 'retentionFrom', kind: 'decimal' },
    { path: 'retentionDetail.retentionTo', name: 'retentionTo', kind: 'decimal' },
  ],
  account_transactions: [
    { path: 'movementId', name: 'movementId', kind: 'text' },
    { path: 'accountId', name: 'accountId', kind: 'text' },
    { path: 'type', name: 'type', kind: 'text' },
    { path: 'amount', name: 'amount', kind: 'decimal' },
    { path: 'exchangeRate', name: 'exchangeRate', kind: 'decimal' },
    { path: 'commission', name: 'commission', kind: 'decimal' },
    { path: 'taxes', name: 'taxes', kind: 'decimal' },
    { path: 'currency', name: 'currency', kind: 'text' },
    { path: 'localCurrency', name: 'localCurrency', kind: 'text' },
    { path: 'description', name: 'description', kind: 'text' },
    { path: 'operationDateDay', name: 'operationDateDay', kind: 'text' },
    { path: 'originalOperationDateDay', name: 'originalOperationDateDay', kind: 'text' },
    { path: 'valueDateDay', name: 'valueDateDay', kind: 'text' },
    { path: 'originalValueDateDay', name: 'originalValueDateDay', kind: 'text' },
    { path: 'operationDateHour', name: 'operationDateHour', kind: 'text' },
    { path: 'originalOperationDateHour', name: 'originalOperationDateHour', kind: 'text' },
    { path: 'valueDateHour', name: 'valueDateHour', kind: 'text' },
    { path: 'originalValueDateHour', name: 'originalValueDateHour', kind: 'text' },
    { path: 'originalOperationDateTz', name: 'originalOperationDateTz', kind: 'text' },
    { path: 'originalValueDateTz', name: 'originalValueDateTz', kind: 'text' },
    { path: 'investment', name: 'investment', kind: 'text' },
  ],
  transfer_orders: [
    { path: 'portfolio', name: 'portfolio', kind: 'text' },
    { path: 'investment', name: 'investment', kind: 'text' },
    { path: 'name', name: 'name', kind: 'text' },
    { path: 'isin', name: 'isin', kind: 'text' },
    { path: 'currency', name: 'currency', kind: 'text' },
    { path: 'assetType', name: 'assetType', kind: 'text' },
    { path: 'titles', name: 'titles', kind: 'decimal' },
    { path: 'amount', name: 'amount', kind: 'decimal' },
    { path: 'total', name: 'total', kind: 'boolean' },
    { path: 'marketer.name', name: 'marketerName', kind: 'text' },
    { path: 'marketer.cif', name: 'marketerCif', kind: 'text' },
    { path: 'managementCompany.name', name: 'managementCompanyName', kind: 'text' },
    { path: 'managementCompany.cif', name: 'managementCompanyCif', kind: 'text' },
  ],
} satisfies Record<string, Column[]>
