import type { ColumnType, Generated, GeneratedAlways } from 'kysely'
import type { AccountTransaction } from '../schemas/account-transaction.ts'
import type { PortfolioTransaction } from '../schemas/portfolio-transaction.ts'
import type { AssetsTransferOrder } from '../schemas/transfer-order.ts'

/** Tables after all migrations. Decimals and days are strings: floats and JavaScript Dates would change them. */
export interface Tables {
  app: {
    id: Generated<string>
    name: string
    client_id: string | null
    created_at: GeneratedAlways<Date>
  }
  app_token: {
    id: Generated<string>
    app_id: string
    token_hash: Buffer
    created_at: GeneratedAlways<Date>
    expires_at: Moment
    revoked_at: Moment
  }
  connection: {
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
  connection_version: { connection_id: BigInteger; data_version: BigInteger; changed_at: Date }
  portfolio_transaction: Row<Omit<PortfolioTransaction, 'retentionDetail'>> & {
    retention_from: Decimal | null
    retention_to: Decimal | null
    effective_day: GeneratedAlways<Day>
    change_number: ColumnType<BigInteger, never, never>
  }
  portfolio_transaction_month: Month
  account_transaction: Row<AccountTransaction> & {
    effective_day: GeneratedAlways<Day>
    change_number: ColumnType<BigInteger, never, never>
  }
  account_transaction_month: Month
  assets_transfer_order: Row<Omit<AssetsTransferOrder, 'marketer' | 'managementCompany'>> & {
    marketer_name: string | null
    marketer_cif: string | null
    management_company_name: string | null
    management_company_cif: string | null
    completed_at: Date | null
  }
  kysely_migration: { name: string; timestamp: string }
}

/** Tables of the lists with pages and changes. */
export type TransactionTable = 'portfolio_transaction' | 'account_transaction'

/** PostgreSQL's bigint, which pg returns as a string. */
type BigInteger = string
/** Exact decimal (`numeric`), with all its digits. */
type Decimal = string
type Day = string
type Moment = ColumnType<Date | null, Date | string | null | undefined>
type Month = { connection_id: BigInteger; first_day: Day; row_count: number }

type SnakeCase<Name extends string> = Name extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${SnakeCase<Rest>}`
  : Name

/** Row of a connection, with a column for each field of an item. columnOf() names them. */
type Row<Item> = { connection_id: BigInteger } & {
  [Field in keyof Item & string as SnakeCase<Field>]: Item[Field]
}
