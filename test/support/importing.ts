import type pg from 'pg'
import type { Test } from 'tap'
import { ImportRejected } from '../../src/operator/errors.ts'
import { importRows } from '../../src/operator/loading/import-rows.ts'
import type { RowCounts as LoadCounts, Replacement } from '../../src/operator/loading/merge.ts'
import type { ListName } from '../../src/operator/loading/row-types.ts'

import type { FileFormat } from '../../src/operator/loading/source.ts'
import { createDatabase, openPool } from './database.ts'
import { openAsOwner } from './logins.ts'
import { addApp, addConnection } from './rows.ts'

export interface Importing {
  url: string
  pool: pg.Pool
  db: ReturnType<typeof openAsOwner>
  /** Creates a connection without rows. */
  newConnection(): Promise<{ id: string; token: string }>
  /** Imports the text as one file. */
  run(
    type: ListName,
    connection: { id: string },
    text: string | Buffer,
    more?: More,
  ): Promise<LoadCounts & { read: number }>
  /** Imports an invalid text and returns its problems, as `line: field: reason`. */
  problems(type: ListName, text: string | Buffer, more?: More): Promise<string[]>
  /** Data version and row counts of a connection. */
  rowCounts(connection: { id: string }): Promise<RowCounts>
}

interface More {
  format?: FileFormat
  dryRun?: boolean
  replace?: Replacement
  /** Size of the chunks, in bytes. */
  chunkBytes?: number
}

interface RowCounts {
  version: number
  portfolio: number
  account: number
}

/** Creates a database to import into. It is closed at teardown. */
export async function prepareImport(t: Test): Promise<Importing> {
  const { url } = await createDatabase(t)
  const db = openAsOwner(t, url)
  const pool = openPool(t, url, { max: 3 })
  const appId = await addApp(db)
  const newConnection = () => addConnection(db, appId)
  const run: Importing['run'] = async (type, { id }, text, { chunkBytes, ...options } = {}) => {
    const { counts } = await importRows(pool, {
      type,
      connectionId: id,
      sources: [{ name: 'rows.ndjson', chunks: chunksOf(text, chunkBytes) }],
      ...options,
    })
    return counts
  }
  const problems: Importing['problems'] = async (type, text, more) => {
    const connection = await newConnection()
    const error = await run(type, connection, text, more).catch((rejected: unknown) => rejected)
    if (!(error instanceof ImportRejected)) throw error
    const row = ({ line, field, reason }: ImportRejected['problems'][number]) =>
      [line, field, reason].filter((part) => part !== undefined).join(': ')
    return error.problems.map(row)
  }
  const rowCounts: Importing['rowCounts'] = async ({ id }) => {
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
  return { url, pool, db, newConnection, run, problems, rowCounts }
}

export async function* chunksOf(text: string | Buffer, size?: number): AsyncGenerator<Buffer> {
  const bytes = Buffer.from(text)
  const step = size ?? Math.max(bytes.length, 1)
  for (let start = 0; start < bytes.length; start += step) yield bytes.subarray(start, start + step)
}

/** JSON of a portfolio transaction: the required fields, and the members of a test. */
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
