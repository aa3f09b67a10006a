import {
  type Connection,
  type InvestmentData,
  InvestmentDataError,
  SqliteStore,
} from '../../typescript/src/index.ts'
import { Refusal } from './refusal.ts'

/** Most rows of a connection. Each row is about 1 KB of memory. */
const MAX_ROWS = 200_000
/** Most rows of all copies. Above it, those that were not read for the longest time are dropped. */
const MAX_ROWS_OF_ALL = 400_000

/**
 * Copies in memory, by connection token. An app that serves HTTP creates a server for each request, so the
 * copies belong to the client of the API and not to the server.
 */
const copiesByApi = new WeakMap<InvestmentData, Map<string, Copy>>()

interface Copy {
  store: SqliteStore
  rows: number
}

/**
 * Brings the copy of a connection up to date and returns it. Without changes, this is one request. Calls at the
 * same time share it.
 * @throws InvestmentDataError if the service cannot be read: an old copy is never returned
 * @throws Refusal if the connection has too many rows
 */
export async function currentCopy(api: InvestmentData, token: string): Promise<SqliteStore> {
  const copies = copiesByApi.get(api) ?? new Map<string, Copy>()
  copiesByApi.set(api, copies)
  const copy = copies.get(token) ?? newCopy()
  copies.delete(token)
  copies.set(token, copy)
  const connection = api.connection(token)
  try {
    await update(copy, connection)
  } catch (error) {
    if (isGone(error) || error instanceof Refusal) copies.delete(token)
    throw error
  }
  dropOldest(copies, token)
  return copy.store
}

function newCopy(): Copy {
  // An import of this module fails in earlier versions of Node.js, before the program can say which one it needs.
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite')
  return { store: new SqliteStore(new DatabaseSync(':memory:'), 'connection'), rows: 0 }
}

async function update(copy: Copy, connection: Connection): Promise<void> {
  // Before the first copy, two small requests keep a large connection out of the memory.
  if (copy.store.state('portfolio_transactions') === null)
    refuseMoreThan(MAX_ROWS, await rowsOf(connection))
  const { portfolio, account, orders } = await connection.syncTransactions(copy.store)
  copy.rows = portfolio.totalItems + account.totalItems + orders.totalItems
  refuseMoreThan(MAX_ROWS, copy.rows)
}

async function rowsOf(connection: Connection): Promise<number> {
  let rows = 0
  for (const list of [
    connection.portfolioTransactions({ limit: 1 }),
    connection.accountTransactions({ limit: 1 }),
  ]) {
    await list.next()
    rows += list.totalItems ?? 0
  }
  return rows
}

function refuseMoreThan(most: number, rows: number): void {
  if (rows > most)
    throw new Refusal(
      `The connection has ${rows} rows, and this server reads at most ${most}. ` +
        'Another program must read it, for example an export of the service.',
    )
}

const isGone = (error: unknown) =>
  error instanceof InvestmentDataError && error.code === 'connection_not_found'

function dropOldest(copies: Map<string, Copy>, used: string): void {
  let rows = 0
  for (const copy of copies.values()) rows += copy.rows
  for (const [token, copy] of copies) {
    if (rows <= MAX_ROWS_OF_ALL) return
    if (token === used) continue
    copies.delete(token)
    rows -= copy.rows
  }
}
