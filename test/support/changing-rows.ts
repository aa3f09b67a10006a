import { type Kysely, sql } from 'kysely'
import type { Test } from 'tap'
import type { Tables } from '../../src/postgres/tables.ts'
import { type Result, sendAndRead } from './golden-responses.ts'
import { keepDoing } from './keep-doing.ts'
import { type Caller, listNames, lists } from './rows.ts'

/**
 * Connection whose rows all change in one transaction, from one version to the next. Each response thus
 * shows if it is complete, and its version.
 */
export interface ChangingRows {
  /** Oldest version that a new request may see. */
  committed: number
  /** Newest version that a request may see. */
  begun: number
  /** Changes all rows to the next version, in one transaction. */
  change(): Promise<void>
  /** Changes the rows until the returned function or the end of the test stops it. */
  keepChanging(t: Test, pauseMs: number): () => Promise<void>
  /** Requests a list of the connection and checks its rows and their version. */
  check(url: string): Promise<Result>
}

/** Adds this number of rows to both lists of the caller's connection. */
export async function addChangingRows(
  db: Kysely<Tables>,
  { connection, token }: Caller,
  rows: number,
): Promise<ChangingRows> {
  const all = Array.from({ length: rows }, (_, n) => ({
    operation_date_day: new Date(Date.UTC(2020, 0, 1 + n)).toISOString().slice(0, 10),
    description: '0',
  }))
  for (const name of listNames) await lists[name].add(db, connection, ...all)
  let turn = 0
  const versions: ChangingRows = {
    committed: 0,
    begun: 0,
    change: async () => {
      versions.begun += 1
      const description = sql.lit(String(versions.begun))
      await db.transaction().execute(async (transaction) => {
        for (const table of ['portfolio_transaction', 'account_transaction'])
          await sql`update ${sql.id(table)} set description = ${description}
            where connection_id = ${connection.id}`.execute(transaction)
      })
      versions.committed = versions.begun
    },
    keepChanging: (t, pauseMs) => keepDoing(t, pauseMs, versions.change),
    check: async (url) => {
      turn += 1
      const list = listNames[turn % 2] ?? 'account'
      const least = versions.committed
      const path = `${connection[list]}?limit=10000`
      const { status, text } = await sendAndRead(url, { path, token })
      if (status !== 200) return `error: status ${status}: ${text}`
      return checkRows(JSON.parse(text), { rows, least, most: versions.begun })
    },
  }
  return versions
}

interface Page {
  items: { description: string }[]
  totalItems: number
}

interface Expected {
  rows: number
  least: number
  most: number
}

function checkRows({ items, totalItems }: Page, { rows, least, most }: Expected): Result {
  if (items.length !== rows || totalItems !== rows)
    return `error: ${items.length} of ${totalItems} rows`
  const seen = new Set(items.map(({ description }) => Number(description)))
  if (seen.size !== 1) return `error: rows of several versions: ${[...seen].slice(0, 5)}`
  const [version = Number.NaN] = seen
  if (version >= least && version <= most) return 'ok'
  return `error: version ${version}, expected ${least} to ${most}`
}
