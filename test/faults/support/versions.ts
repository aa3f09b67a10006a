import { setTimeout as sleep } from 'node:timers/promises'
import { type Kysely, sql } from 'kysely'
import type { Test } from 'tap'
import type { Tables } from '../../../src/postgres/tables.ts'
import { type Caller, listNames, lists } from '../../support/rows.ts'
import type { ServiceResponse } from '../../support/service.ts'

/**
 * A connection whose rows all change at once, from one version to the next, so that every answer tells
 * by itself whether it is whole, and of which moment.
 */
export interface Versions {
  /** The version that everybody must see by now, and the newest that anybody may see. */
  committed: number
  begun: number
  /** Gives all rows the next version, in one transaction. */
  next(): Promise<void>
  /** Does so again and again; the function that comes back ends it, as the end of the test does. */
  keepChanging(t: Test, pauseMs: number): () => Promise<void>
  /** Asks for a list, and holds the answer against the truth; returns what is wrong with it. */
  check(get: Get): Promise<string | undefined>
}

/** Asks for a path as the app that has the connection. */
export type Get = (path: string) => Promise<ServiceResponse>

/** Fills a connection with so many rows of each list. */
export async function versionsOf(
  db: Kysely<Tables>,
  { connection }: Caller,
  rows: number,
): Promise<Versions> {
  const all = Array.from({ length: rows }, (_, n) => ({
    operation_date_day: new Date(Date.UTC(2020, 0, 1 + n)).toISOString().slice(0, 10),
    description: '0',
  }))
  for (const name of listNames) await lists[name].add(db, connection, ...all)
  let turn = 0
  const versions: Versions = {
    committed: 0,
    begun: 0,
    next: async () => {
      versions.begun += 1
      const description = sql.lit(String(versions.begun))
      const changes = ['portfolio_transaction', 'account_transaction'].map(
        (table) => sql`update ${sql.id(table)} set description = ${description}
          where connection_id = ${connection.id}`,
      )
      await db.transaction().execute(async (all) => {
        for (const change of changes) await change.execute(all)
      })
      versions.committed = versions.begun
    },
    keepChanging: (t, pauseMs) => {
      let ended = false
      const change = async () => {
        while (!ended) {
          await versions.next()
          await sleep(pauseMs)
        }
      }
      const changing = change()
      const end = () => {
        ended = true
        return changing
      }
      t.teardown(end)
      return end
    },
    check: async (get) => {
      turn += 1
      const name = listNames[turn % 2] ?? 'account'
      const least = versions.committed
      const answer = await get(`${connection[name]}?limit=10000`)
      if (answer.status !== 200) return `status ${answer.status}: ${answer.text}`
      return faultOf(answer, { rows, least, most: versions.begun })
    },
  }
  return versions
}

interface Truth {
  rows: number
  least: number
  most: number
}

function faultOf(answer: ServiceResponse, { rows, least, most }: Truth): string | undefined {
  const { items, totalItems } = answer.json() as Page
  if (items.length !== rows || totalItems !== rows) return `${items.length} of ${totalItems} rows`
  const seen = new Set(items.map(({ description }) => Number(description)))
  if (seen.size !== 1) return `rows of several versions: ${[...seen].slice(0, 5)}`
  const [version = Number.NaN] = seen
  if (version >= least && version <= most) return undefined
  return `version ${version}, where it has to be from ${least} to ${most}`
}

interface Page {
  items: { description: string }[]
  totalItems: number
}
