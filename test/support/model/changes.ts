import { Readable } from 'node:stream'
import { type Kysely, sql } from 'kysely'
import type pg from 'pg'
import type { Test } from 'tap'
import { importRows } from '../../../src/operator/loading/import-rows.ts'
import type { Tables } from '../../../src/postgres/tables.ts'
import { type Random, randomOf } from '../random.ts'
import { addCaller, type Caller, type List, listNames, lists } from '../rows.ts'
import type { Service } from '../service.ts'

export interface Page {
  items: Record<string, unknown>[]
  totalItems: number
  removed: string[]
  nextCursor: string
  hasMore: boolean
}

export type Get = Service['get']

/** A client's copy: rows by id, as JSON with the digits of the response. */
export interface Copy {
  rows: Map<string, string>
  cursor: string
  /** Data-Version of the response that had the cursor. */
  version?: string
}

/** The service has expired the cursor (410). */
export class Expired extends Error {}

export const newCopy = (): Copy => ({ rows: new Map(), cursor: 'start' })

/** Texts of the items of a response, with every digit. */
function itemsOf(text: string): string[] {
  const array = text.slice('{"items":['.length, text.lastIndexOf('],"limit"'))
  return array === ''
    ? []
    : array
        .slice(1, -1)
        .split('},{')
        .map((item) => `{${item}}`)
}

const limits = [1, 2, 3, 7, 1000]

/** Draws the size of a page, and whether its reader crashes. */
export const anyPage = (random: Random, crashes: number) => ({
  limit: random.oneOf(limits),
  crash: random.chance(crashes),
})

/** Reads one page into a copy. A client that crashes keeps neither rows nor cursor. */
export async function readPage(
  get: Get,
  list: List,
  { token, connection }: Caller,
  copy: Copy,
  { limit = 1_000, crash = false } = {},
) {
  const path = `${connection[list]}?since=${copy.cursor}&limit=${limit}`
  const { status, headers, text, json } = await get(path, { token })
  if (status === 410) throw new Expired()
  if (status !== 200) throw new Error(`${status} ${text}`)
  const page: Page = json()
  const texts = itemsOf(text)
  const ids = page.items.map((item) => String(item[lists[list].id]))
  const all = [...ids, ...page.removed]
  if (new Set(all).size < all.length || all.length > limit || texts.length !== ids.length) {
    throw new Error(`a page of ${limit} changes: ${text}`)
  }
  if (crash) return page
  for (const [index, id] of ids.entries()) copy.rows.set(id, texts[index] as string)
  for (const id of page.removed) copy.rows.delete(id)
  copy.cursor = page.nextCursor
  copy.version = String(headers.get('data-version'))
  return page
}

/** Reads pages of different sizes, the last of 1000 changes, until the copy is complete. */
export async function readAll(get: Get, list: List, caller: Caller, copy: Copy): Promise<Page> {
  for (let pages = 0; ; pages += 1) {
    const limit = limits[pages] ?? 1000
    const page = await readPage(get, list, caller, copy, { limit })
    if (!page.hasMore) return page
  }
}

/** Rows of the list itself, by id. */
export async function readList(
  get: Get,
  list: List,
  { token, connection }: Caller,
): Promise<Map<string, string>> {
  const { text, json } = await get(`${connection[list]}?limit=10000`, { token })
  const { items } = json() as Page
  const texts = itemsOf(text)
  return new Map(items.map((item, index) => [String(item[lists[list].id]), texts[index] as string]))
}

/** Service, and the tables that it serves as their owner. */
interface Feed {
  get: Get
  db: Kysely<Tables>
  pool: pg.Pool
}

/**
 * Follows the changes of both lists while three writers change them. The readers read pages of random
 * limits, crash at random, and keep only the cursors that they stored. At rest, each copy equals the list.
 * @param rounds statements of each writer on each list
 */
export async function followChanges(t: Test, { get, db, pool }: Feed, rounds: number) {
  const caller = await addCaller(db)
  let [pages, crashes, rows] = [0, 0, 0]
  for (const list of listNames) {
    const ids = Array.from({ length: 40 }, randomOf(`ids ${list}`).uuid)
    const copies = Array.from({ length: 4 }, newCopy)
    let writing = true
    const writer = async (number: number) => {
      const random = randomOf(`writer ${list} ${number}`)
      for (let round = 0; round < rounds; round += 1)
        await write({ db, pool }, list, caller, ids, number, random)
    }
    const reader = async (copy: Copy, number: number) => {
      const random = randomOf(`reader ${list} ${number}`)
      while (writing) {
        const any = anyPage(random, 0.3)
        const page = await readPage(get, list, caller, copy, any)
        pages += 1
        crashes += Number(any.crash)
        rows += page.items.length + page.removed.length
      }
    }
    const reading = Promise.all(copies.map(reader))
    await Promise.all([0, 1, 2].map(writer)).finally(() => {
      writing = false
    })
    await reading
    const expected = await readList(get, list, caller)
    for (const copy of [...copies, newCopy()]) {
      const last = await readAll(get, list, caller, copy)
      t.equal(last.totalItems, copy.rows.size)
      t.same(copy.rows, expected)
    }
  }
  t.ok(pages > 20, `${pages} pages`)
  t.comment(`${6 * rounds} writes, ${pages} pages of ${rows} changes, ${crashes} crashes`)
}

/** Imports, inserts, updates or deletes some rows, sometimes in a transaction that is rolled back. */
export async function write(
  { db, pool }: Omit<Feed, 'get'>,
  list: List,
  { connection }: Caller,
  ids: string[],
  writer: number,
  random: Random,
) {
  const some = Array.from({ length: 1 + random.below(5) }, () => random.oneOf(ids))
  const chosen = [...new Set(some)].sort()
  const amount = `${random.below(1000)}.${'0'.repeat(writer)}5`
  if (random.chance(0.4)) {
    const lines = chosen.map((id) => ({
      [lists[list].id]: id,
      [list === 'portfolio' ? 'portfolioId' : 'accountId']: id,
      type: 'UNKNOWN',
      amount: Number(amount),
      valueDateDay: '2025-03-14',
    }))
    const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('')
    const sources = [{ name: 'rows', chunks: Readable.from([Buffer.from(text)]) }]
    const replace = random.chance(0.3) ? { yes: true } : undefined
    const into = { type: `${list}-transactions`, connectionId: connection.id } as const
    await importRows(pool, { ...into, sources, replace })
    return
  }
  const table = sql.table(lists[list].table)
  const key = sql.ref(lists[list].idColumn)
  const mine = sql`connection_id = ${connection.id} and ${key} = any(${chosen}::uuid[])`
  const owner = sql.ref(list === 'portfolio' ? 'portfolio_id' : 'account_id')
  const statements = [
    sql`delete from ${table} where ${mine}`,
    sql`update ${table} set amount = ${amount} where ${mine}`,
    sql`insert into ${table} (connection_id, ${key}, ${owner}, type, amount, value_date_day)
      select ${connection.id}, id, id, 'UNKNOWN', ${amount}, date '2025-01-01' + ${writer}::integer
      from unnest(${chosen}::uuid[]) id on conflict (connection_id, ${key})
      do update set amount = excluded.amount`,
  ]
  const work = async (transaction: Kysely<Tables>) => {
    // Writers of several rows lock the connection first, as the import does.
    await sql`select from connection where id = ${connection.id} for no key update`.execute(
      transaction,
    )
    for (let n = 0; n < 3; n += 1) await random.oneOf(statements).execute(transaction)
    if (random.chance(0.2)) throw new RolledBack()
  }
  await db
    .transaction()
    .execute(work)
    .catch((error) => {
      if (!(error instanceof RolledBack)) throw error
    })
}

class RolledBack extends Error {}
