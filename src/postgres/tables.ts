import type { ColumnType, Generated, GeneratedAlways } from 'kysely'
import type { AccountTransactionType } from '../schemas/account-transaction.ts'
import type { PortfolioTransactionType } from '../schemas/portfolio-transaction.ts'

/**
 * Tables after all migrations. Decimals and days are strings: floats and JavaScript Dates would change
 * them.
 */
export interface Tables {
  app: AppTable
  app_token: AppTokenTable
  connection: ConnectionTable
  portfolio_transaction: PortfolioTransactionTable
  portfolio_transaction_day: DayTable
  portfolio_transaction_month: MonthTable
  account_transaction: AccountTransactionTable
  account_transaction_day: DayTable
  account_transaction_month: MonthTable
  assets_transfer_order: AssetsTransferOrderTable
  kysely_migration: { name: string; timestamp: string }
}

/** PostgreSQL's bigint, which pg returns as a string. */
type BigInteger = string
/** Exact decimal (`numeric`), with all its digits. */
type Decimal = string
/** A calendar date, YYYY-MM-DD. */
type Day = string

interface AppTable {
  id: Generated<string>
  name: string
  client_id: string | null
  created_at: GeneratedAlways<Date>
}

interface AppTokenTable {
  id: Generated<string>
  app_id: string
  token_hash: Buffer
  created_at: GeneratedAlways<Date>
  expires_at: ColumnType<Date | null, Date | string | null | undefined>
  revoked_at: ColumnType<Date | null, Date | string | null | undefined>
}

interface ConnectionTable {
  /** connectionKey() of the token's hash. */
  id: ColumnType<BigInteger, BigInteger, never>
  app_id: string
  token_hash: Buffer
  label: string | null
  created_at: GeneratedAlways<Date>
  portfolio_transactions: ColumnType<BigInteger, never, never>
  account_transactions: ColumnType<BigInteger, never, never>
  data_version: ColumnType<BigInteger, never, never>
  changed_at: ColumnType<Date, never, never>
  change_horizon: ColumnType<BigInteger, never, BigInteger>
}

interface DayTable {
  connection_id: BigInteger
  effective_day: Day
  row_count: number
}

interface MonthTable {
  connection_id: BigInteger
  first_day: Day
  row_count: number
}

interface DateColumns {
  operation_date_day: Day | null
  original_operation_date_day: Day | null
  value_date_day: Day | null
  original_value_date_day: Day | null
  operation_date_hour: string | null
  original_operation_date_hour: string | null
  value_date_hour: string | null
  original_value_date_hour: string | null
  original_operation_date_tz: string | null
  original_value_date_tz: string | null
  effective_day: GeneratedAlways<Day>
}

interface PortfolioTransactionTable extends DateColumns {
  connection_id: BigInteger
  transaction_id: string
  portfolio_id: string
  type: PortfolioTransactionType
  exchange_rate: Decimal | null
  titles: Decimal | null
  amount: Decimal | null
  amount_base_currency: Decimal | null
  commission: Decimal | null
  taxes: Decimal | null
  price: Decimal | null
  currency: string | null
  local_currency: string | null
  description: string | null
  investment: string | null
  related_transaction: string | null
  retention_from: Decimal | null
  retention_to: Decimal | null
}

interface AccountTransactionTable extends DateColumns {
  connection_id: BigInteger
  movement_id: string
  account_id: string
  type: AccountTransactionType
  amount: Decimal
  exchange_rate: Decimal | null
  commission: Decimal | null
  taxes: Decimal | null
  currency: string | null
  local_currency: string | null
  description: string | null
  investment: string | null
}

interface AssetsTransferOrderTable {
  connection_id: BigInteger
  id: string
  portfolio: string | null
  investment: string | null
  name: string | null
  isin: string | null
  currency: string | null
  asset_type: string | null
  titles: Decimal | null
  amount: Decimal | null
  total: boolean | null
  marketer_name: string | null
  marketer_cif: string | null
  management_company_name: string | null
  management_company_cif: string | null
  completed_at: Date | null
}
