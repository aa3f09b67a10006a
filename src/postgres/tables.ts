import type { ColumnType, Generated, GeneratedAlways } from 'kysely'
import type { AccountTransaction } from '../schemas/account-transaction.ts'
import type { PortfolioTransaction } from '../schemas/portfolio-transaction.ts'
import type { AssetsTransferOrder } from '../schemas/transfer-order.ts'

/** Tables after all migrations. Decimals and days are strings: floats and JavaScript Dates would change them. */
export interface Tables {
  app: AppTable
  app_token: AppTokenTable
  connection: ConnectionTable
  connection_version: ConnectionVersionTable
  portfolio_transaction: PortfolioTransactionTable
  portfolio_transaction_month: MonthTable
  account_transaction: AccountTransactionTable
  account_transaction_month: MonthTable
  assets_transfer_order: AssetsTransferOrderTable
  kysely_migration: { name: string; timestamp: string }
}

/** PostgreSQL's bigint, which pg returns as a string. */
type BigInteger = string
/** Exact decimal (`numeric`), with all its digits. */
type Decimal = string
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
  refreshed_at: Date | null
  external_id: string | null
}

interface ConnectionVersionTable {
  connection_id: BigInteger
  data_version: BigInteger
  changed_at: Date
}

interface MonthTable {
  connection_id: BigInteger
  first_day: Day
  row_count: number
}

type SnakeCase<Name extends string> = Name extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${SnakeCase<Rest>}`
  : Name

/** Columns of the fields of an item, as columnOf() names them. */
type Columns<Item> = { [Field in keyof Item & string as SnakeCase<Field>]: Item[Field] }

interface PortfolioTransactionTable extends Columns<Omit<PortfolioTransaction, 'retentionDetail'>> {
  connection_id: BigInteger
  retention_from: Decimal | null
  retention_to: Decimal | null
  effective_day: GeneratedAlways<Day>
}

interface AccountTransactionTable extends Columns<AccountTransaction> {
  connection_id: BigInteger
  effective_day: GeneratedAlways<Day>
}

interface AssetsTransferOrderTable
  extends Columns<Omit<AssetsTransferOrder, 'marketer' | 'managementCompany'>> {
  connection_id: BigInteger
  marketer_name: string | null
  marketer_cif: string | null
  management_company_name: string | null
  management_company_cif: string | null
  completed_at: Date | null
}
