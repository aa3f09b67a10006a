import pg from 'pg'
import type { Test } from 'tap'
import { ImportRejected } from '../../src/operator/errors.ts'
import { importRows } from '../../src/operator/import/import-rows.ts'
import type { KindName } from '../../src/operator/import/import-types.ts'
import type { ImportCounts } from '../../src/operator/import/merge.ts'
import { createDatabase } from '../support/database.ts'
import { openAsOwner } from '../support/logins.ts'
import { addApp, addConnection } from '../support/rows.ts'

export interface Importing {
  url: string
  pool: pg.Pool
  db: ReturnType<typeof openAsOwner>
  /** A new connection without rows. */
  newConnection(): Promise<{ id: string; token: string }>
  /** Imports the text as one file. */
  run(
    kind: KindName,
    connection: { id: string },
    text: string | Buffer,
    more?: More,
  ): Promise<ImportCounts>
  /** The faults of a file that must have some, as `line: field: reason`. */
  faults(kind: KindName, text: string | Buffer): Promise<string[]>
  /** Version and counts of a connection. */
  books(connection: { id: string }): Promise<Books>
}

interface More {
  dryRun?: boolean
  /** Cuts the text into chunks of so many bytes. */
  chunkBytes?: number
}

interface Books {
  version: number
  portfolio: number
  account: number
}

/** A database of its own to import into; closed at teardown. */
export async function prepareImport(t: Test): Promise<Importing> {
  const { url } = await createDatabase(t)
  const db = openAsOwner(t, url)
  const pool = new pg.Pool({ connectionString: url, max: 3 })
  pool.on('error', () => {})
  t.teardown(() => pool.end())
  const appId = await addApp(db)
  const newConnection = () => addConnection(db, appId)
  const run: Importing['run'] = async (kind, { id }, text, { dryRun = false, chunkBytes } = {}) => {
    const { counts } = await importRows(pool, {
      kind,
      connectionId: id,
      sources: [{ name: 'rows.ndjson', chunks: chunksOf(text, chunkBytes) }],
      dryRun,
    })
    return counts
  }
  const faults: Importing['faults'] = async (kind, text) => {
    const connection = await newConnection()
    const error = await run(kind, connection, text).catch((rejected: unknown) => rejected)
    if (!(error instanceof ImportRejected)) throw error
    const row = ({ line, field, reason }: ImportRejected['faults'][number]) =>
      [line, field, reason].filter((part) => part !== undefined).join(': ')
    return error.faults.map(row)
  }
  const books: Importing['books'] = async ({ id }) => {
    const row = await db
      .selectFrom('connection')
      .selectAll()
      .where('id', '=', id)
      .executeTakeFirstOrThrow()
    return {
      version: Number(row.data_version),
      portfolio: Number(row.portfolio_transactions),
      account: Number(row.account_transactions),
    }
  }
  return { url, pool, db, newConnection, run, faults, books }
}

export async function* chunksOf(text: string | Buffer, size?: number): AsyncGenerator<Buffer> {
  const bytes = Buffer.from(text)
  const step = size ?? Math.max(bytes.length, 1)
  for (let start = 0; start < bytes.length; start += step) yield bytes.subarray(start, start + step)
}

/** The least that a portfolio transaction must have, with what a test adds, as JSON. */
export function portfolioLine(id: number, members = ''): string {
  return (
    `{"transactionId":"${uuid(id)}","portfolioId":"${uuid(0)}","type":"BUY",` +
    `"operationDateDay":"2024-02-29"${members && `,${members}`}}`
  )
}

export function accountLine(id: number, members = ''): string {
  return (
    `{"movementId":"${uuid(id)}","accountId":"${uuid(0)}","type":"DEPOSIT","amount":1,` +
    `"operationDateDay":"2024-02-29"${members && `,${members}`}}`
  )
}

export function orderLine(id: number, members = ''): string {
  return `{"id":"${uuid(id)}"${members && `,${members}`}}`
}

export function uuid(number: number): string {
  return `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`
}
