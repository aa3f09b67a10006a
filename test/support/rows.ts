import { randomBytes, randomUUID } from 'node:crypto'
import { type Insertable, type Kysely, sql } from 'kysely'
import type { Tables } from '../../src/postgres/tables.ts'
import { connectionKey, tokenHash } from '../../src/postgres/tokens.ts'
import { AccountTransactions } from '../../src/schemas/account-transaction.ts'
import { columnOf } from '../../src/schemas/fields.ts'
import { PortfolioTransactions } from '../../src/schemas/portfolio-transaction.ts'

type Db = Kysely<Tables>
type Row<Table extends keyof Tables> = Partial<Insertable<Tables[Table]>>

/** An app with a token, and one connection of it. */
export interface Caller {
  appId: string
  /** The app's bearer token. */
  token: string
  connection: TestConnection
}

export interface TestConnection {
  id: string
  token: string
  /** Paths of the three endpoints. */
  portfolio: string
  account: string
  orders: string
}

export async function addCaller(db: Db): Promise<Caller> {
  const appId = await addApp(db)
  return { appId, token: await addToken(db, appId), connection: await addConnection(db, appId) }
}

export async function addApp(db: Db, row: Row<'app'> = {}): Promise<string> {
  const name = `app ${randomUUID()}`
  const values = { name, ...row }
  return (await db.insertInto('app').values(values).returning('id').executeTakeFirstOrThrow()).id
}

/** Issues a bearer token and returns it; the table holds only its hash. */
export async function addToken(db: Db, appId: string, row: Row<'app_token'> = {}): Promise<string> {
  const token = `app_${randomBytes(32).toString('base64url')}`
  const values = { app_id: appId, token_hash: tokenHash(token), ...row }
  await db.insertInto('app_token').values(values).execute()
  return token
}

export async function addConnection(
  db: Db,
  appId: string,
  token: string = randomBytes(5).toString('hex'),
): Promise<TestConnection> {
  const hash = tokenHash(token)
  const id = connectionKey(hash)
  await db.insertInto('connection').values({ id, app_id: appId, token_hash: hash }).execute()
  return { id, token, ...addresses(token) }
}

/** connectionKey() of a hash, in SQL. */
export const keySql = (hash: string) =>
  `('x' || encode(substring(${hash} from 1 for 8), 'hex'))::bit(64)::bigint`

/** Paths of the three endpoints for a connection token. */
export function addresses(token: string) {
  const path = `/api/v1/queries/connections/${encodeURIComponent(token)}`
  return {
    portfolio: `${path}/portfolios/transactions`,
    account: `${path}/accounts/transactions`,
    orders: `${path}/assets-transfer`,
  }
}

/** Adds rows with the given columns and the mandatory ones. */
export async function addPortfolioTransactions(
  db: Db,
  connection: { id: string },
  ...rows: Row<'portfolio_transaction'>[]
): Promise<string[]> {
  const values = rows.map((row) => ({
    connection_id: connection.id,
    transaction_id: randomUUID(),
    portfolio_id: randomUUID(),
    type: 'BUY' as const,
    ...dated(row),
  }))
  await db.insertInto('portfolio_transaction').values(values).execute()
  return values.map((row) => row.transaction_id)
}

export async function addAccountTransactions(
  db: Db,
  connection: { id: string },
  ...rows: Row<'account_transaction'>[]
): Promise<string[]> {
  const values = rows.map((row) => ({
    connection_id: connection.id,
    movement_id: randomUUID(),
    account_id: randomUUID(),
    type: 'DEPOSIT' as const,
    amount: '1',
    ...dated(row),
  }))
  await db.insertInto('account_transaction').values(values).execute()
  return values.map((row) => row.movement_id)
}

/** Adds orders, completed at the same time by default; `completed_at: null` means not completed. */
export async function addTransferOrders(
  db: Db,
  connection: { id: string },
  ...rows: Row<'assets_transfer_order'>[]
): Promise<string[]> {
  const completed_at = new Date('2025-01-01T00:00:00Z')
  const values = rows.map((row) => ({
    connection_id: connection.id,
    id: randomUUID(),
    completed_at,
    ...row,
  }))
  await db.insertInto('assets_transfer_order').values(values).execute()
  return values.map((row) => row.id)
}

/** Adds a number of rows that differ only in their ids, with one short statement. */
export async function addEqualRows(
  db: Db,
  list: List,
  connection: { id: string },
  { count, description = null }: { count: number; description?: string | null },
): Promise<void> {
  const { table, idColumn, owner, type } = {
    portfolio: { ...lists.portfolio, owner: 'portfolio_id', type: 'BUY' },
    account: { ...lists.account, owner: 'account_id', type: 'DEPOSIT' },
  }[list]
  await sql`
    insert into ${sql.table(table)} (connection_id, ${sql.ref(idColumn)}, ${sql.ref(owner)},
      type, amount, operation_date_day, description)
    select ${connection.id}, gen_random_uuid(), gen_random_uuid(),
      ${type}, 1, '2025-01-01', ${description}
    from generate_series(1, ${sql.lit(count)})`.execute(db)
}

/** Adds an operation date, as one of the two dates is mandatory. */
function dated<R extends object>(row: R): R {
  const hasDate = 'operation_date_day' in row || 'value_date_day' in row
  return hasDate ? row : { ...row, operation_date_day: '2025-01-01' }
}

/** The two paged lists, for tests that apply to both. */
export const lists = {
  portfolio: {
    ...PortfolioTransactions,
    add: addPortfolioTransactions,
    idColumn: columnOf(PortfolioTransactions.id) as 'transaction_id',
  },
  account: {
    ...AccountTransactions,
    add: addAccountTransactions,
    idColumn: columnOf(AccountTransactions.id) as 'movement_id',
  },
} as const

export type List = keyof typeof lists

export const listNames = ['portfolio', 'account'] as const
