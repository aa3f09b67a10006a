import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import { type Kysely, sql } from 'kysely'
import pg from 'pg'
import t from 'tap'
import { importRows } from '../../src/operator/import/import-rows.ts'
import type { Tables } from '../../src/postgres/tables.ts'
import { createDatabase } from '../support/database.ts'
import { addCaller, addConnection, type Caller, listNames, lists } from '../support/rows.ts'
import { startService } from '../support/service.ts'
import { isCitus } from '../support/template.ts'

const { url } = await createDatabase(t)
const { db, get } = await startService(t, { databaseUrl: url })
const pool = new pg.Pool({ connectionString: url, max: 8 })
t.teardown(() => pool.end())

const TABLE = { portfolio: 'portfolio_transaction', account: 'account_transaction' } as const
const KEY = { portfolio: 'transactionId', account: 'movementId' } as const
const COLUMN = { portfolio: 'transaction_id', account: 'movement_id' } as const
type List = keyof typeof TABLE

interface Page {
  items: Record<string, unknown>[]
  totalItems: number
  removed: string[]
  nextCursor: string
  hasMore: boolean
}

/** A client's copy: rows by id, as JSON with the digits of the response. */
interface Copy {
  rows: Map<string, string>
  cursor: string
}

const newCopy = (): Copy => ({ rows: new Map(), cursor: 'start' })

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
const oneOf = <T>(values: readonly T[]) => values[Math.floor(Math.random() * values.length)] as T

/** Reads one page into a copy. A client that crashes keeps neither rows nor cursor. */
async function readPage(list: List, { token, connection }: Caller, copy: Copy, crash: boolean) {
  const limit = oneOf(limits)
  const path = `${connection[list]}?since=${copy.cursor}&limit=${limit}`
  const { status, text, json } = await get(path, { token })
  if (status !== 200) throw new Error(`${status} ${text}`)
  const page: Page = json()
  const texts = itemsOf(text)
  const ids = page.items.map((item) => String(item[KEY[list]]))
  const all = [...ids, ...page.removed]
  if (new Set(all).size < all.length || all.length > limit || texts.length !== ids.length) {
    throw new Error(`a page of ${limit} changes: ${text}`)
  }
  if (crash) return page
  for (const [index, id] of ids.entries()) copy.rows.set(id, texts[index] as string)
  for (const id of page.removed) copy.rows.delete(id)
  copy.cursor = page.nextCursor
  return page
}

async function readAll(list: List, caller: Caller, copy: Copy): Promise<Page> {
  for (;;) {
    const page = await readPage(list, caller, copy, false)
    if (!page.hasMore) return page
  }
}

/** Rows of the list itself, by id. */
async function readList(list: List, { token, connection }: Caller): Promise<Map<string, string>> {
  const { text, json } = await get(`${connection[list]}?limit=10000`, { token })
  const { items } = json() as Page
  const texts = itemsOf(text)
  return new Map(items.map((item, index) => [String(item[KEY[list]]), texts[index] as string]))
}

for (const list of listNames) {
  const { add } = lists[list]
  const table = TABLE[list]

  t.test(`${list}: since=start returns all rows; a cursor returns only changes`, async (t) => {
    const caller = await addCaller(db)
    const { connection } = caller
    const copy = newCopy()
    t.match(await readAll(list, caller, copy), { items: [], removed: [], totalItems: 0 })
    const [first, second, third] = await add(db, connection, {}, {}, {})
    t.match(await readAll(list, caller, copy), { removed: [], hasMore: false, totalItems: 3 })
    t.same(copy.rows, await readList(list, caller))

    await db.deleteFrom(table).where(COLUMN[list], '=', String(first)).execute()
    await db
      .updateTable(table)
      .set({ amount: '7.50' })
      .where(COLUMN[list], '=', String(second))
      .execute()
    const { json } = await get(`${connection[list]}?since=${copy.cursor}`, { token: caller.token })
    const page: Page = json()
    t.same(
      page.items.map((item) => item[KEY[list]]),
      [second],
    )
    t.same(page.removed, [first])
    t.match(page, { hasMore: false, totalItems: 2 })
    await readAll(list, caller, copy)
    t.same([...copy.rows.keys()].sort(), [second, third].sort())
    t.same(copy.rows, await readList(list, caller))
  })

  t.test(`${list}: pages are full; removals do not count without earlier rows`, async (t) => {
    const { token, connection } = await addCaller(db)
    await add(db, connection, {}, {}, {})
    await db.deleteFrom(table).where('connection_id', '=', connection.id).execute()
    await add(db, connection, {}, {})
    for (let since = 'start', rest = 1; rest >= 0; rest -= 1) {
      const page: Page = (await get(`${connection[list]}?since=${since}&limit=1`, { token })).json()
      t.match(page, { items: [{}], removed: [], hasMore: rest > 0 })
      since = page.nextCursor
    }
  })

  t.test(`${list}: a row that exists again, a new id, another connection`, async (t) => {
    const caller = await addCaller(db)
    const other = { ...caller, connection: await addConnection(db, caller.appId) }
    const [id = '', moved = '', renamed = ''] = await add(db, caller.connection, {}, {}, {})
    const copy = newCopy()
    await readAll(list, caller, copy)
    const key = sql.ref(COLUMN[list])
    await sql`
      with gone as (delete from ${sql.table(table)} where ${key} = ${id} returning *)
      select from gone`.execute(db)
    await add(db, caller.connection, { [COLUMN[list]]: id })
    if (isCitus) {
      // Citus rejects an update of the distribution column.
      await sql`delete from ${sql.table(table)} where ${key} = ${moved}`.execute(db)
      await add(db, other.connection, { [COLUMN[list]]: moved })
    } else
      await sql`update ${sql.table(table)} set connection_id = ${other.connection.id}
        where ${key} = ${moved}`.execute(db)
    const name = randomUUID()
    await sql`update ${sql.table(table)} set ${key} = ${name} where ${key} = ${renamed}`.execute(db)
    await readAll(list, caller, copy)
    t.same([...copy.rows.keys()].sort(), [id, name].sort())
    t.same(copy.rows, await readList(list, caller))
    const otherCopy = newCopy()
    await readAll(list, other, otherCopy)
    t.same([...otherCopy.rows.keys()], [moved])
  })

  t.test(`${list}: Link to the next changes until the last; 304 until a change`, async (t) => {
    const { token, connection } = await addCaller(db)
    await add(db, connection, {}, {}, {})
    const first = await get(`${connection[list]}?since=start&limit=2`, { token })
    const { nextCursor } = first.json() as Page
    const start = '<?since=start&limit=2>; rel="first"'
    t.equal(first.headers.get('link'), `${start}, <?since=${nextCursor}&limit=2>; rel="next"`)
    const path = `${connection[list]}?since=${nextCursor}&limit=2`
    const last = await get(path, { token })
    t.equal(last.headers.get('link'), start)
    const headers = { 'if-none-match': String(last.headers.get('etag')) }
    t.equal((await get(path, { token, headers })).status, 304)
    await add(db, connection, {})
    t.equal((await get(path, { token, headers })).status, 200)
  })

  t.test(`400: since with parameters of a page, or with a cursor of another list`, async (t) => {
    const caller = await addCaller(db)
    const { token, connection } = caller
    const other = await addConnection(db, caller.appId)
    const cursorOf = async (path: string) =>
      ((await get(`${path}?since=start`, { token })).json() as Page).nextCursor
    const errorsOf = async (query: string) => {
      const { status, json } = await get(`${connection[list]}?${query}`, { token })
      t.equal(status, 400, query)
      const { errors } = json() as { errors: { parameter: string; code: string }[] }
      return errors.map(({ parameter, code }) => `${parameter} ${code}`)
    }
    t.same(await errorsOf('since=start&from=2025-01-01&to=2025-01-02&page=0'), [
      'from excluded_parameter',
      'to excluded_parameter',
      'page excluded_parameter',
    ])
    const otherList = list === 'portfolio' ? connection.account : connection.portfolio
    const own = await cursorOf(connection[list])
    const wrong = ['', 'x', '0', 'START', 'a'.repeat(129), `${own}A`, own.slice(1), own.slice(11)]
    wrong.push(await cursorOf(otherList), await cursorOf(other[list]))
    for (const cursor of wrong) {
      t.same(await errorsOf(`since=${cursor}`), ['since invalid_cursor'], cursor)
    }
    t.same(await errorsOf('since=start&since=start'), ['since repeated_parameter'])
  })

  t.test(
    '410: removals are pruned, rows were truncated, or the database was restored',
    async (t) => {
      const caller = await addCaller(db)
      const { token, connection } = caller
      await add(db, connection, {}, {})
      const { json } = await get(`${connection[list]}?since=start&limit=1`, { token })
      const { nextCursor } = json() as Page
      const path = `${connection[list]}?since=${nextCursor}`
      t.equal((await get(path, { token })).status, 200)
      t.equal((await get(path, { token, headers: { 'if-none-match': '*' } })).status, 304)
      const horizon = (value: string) =>
        sql`update connection set change_horizon = ${sql.raw(value)} where id = ${connection.id}`.execute(
          db,
        )
      await horizon('(data_version + 1) << 31')
      const expired = await get(path, { token })
      t.equal(expired.status, 410)
      t.match(expired.json(), { code: 'cursor_expired' })
      const headers = { 'if-none-match': '*' }
      t.equal((await get(path, { token, headers })).status, 410, 'before the precondition')
      t.equal((await get(`${connection[list]}?since=start`, { token })).status, 200)
      await horizon('0')
      await sql`update connection set data_version = 0 where id = ${connection.id}`.execute(db)
      t.equal((await get(path, { token })).status, 410)
    },
  )
}

t.test('writers, and readers that crash: at rest, each copy equals the list', async (t) => {
  const caller = await addCaller(db)
  for (const list of listNames) {
    const ids = Array.from({ length: 40 }, () => randomUUID())
    const copies = Array.from({ length: 4 }, newCopy)
    let writing = true
    let pages = 0
    const writer = async (number: number) => {
      for (let round = 0; round < 25; round += 1) await write(list, caller, ids, number)
    }
    const reader = async (copy: Copy) => {
      while (writing) {
        await readPage(list, caller, copy, Math.random() < 0.3)
        pages += 1
      }
    }
    const reading = Promise.all(copies.map(reader))
    await Promise.all([0, 1, 2].map(writer)).finally(() => {
      writing = false
    })
    await reading
    const expected = await readList(list, caller)
    t.ok(pages > 20, `${pages} pages`)
    for (const copy of [...copies, newCopy()]) {
      const last = await readAll(list, caller, copy)
      t.equal(last.totalItems, copy.rows.size)
      t.same(copy.rows, expected)
    }
  }
})

/** Imports, inserts, updates or deletes some rows, sometimes in a transaction that is rolled back. */
async function write(list: List, { connection }: Caller, ids: string[], writer: number) {
  const some = Array.from({ length: 1 + Math.floor(Math.random() * 5) }, () => oneOf(ids))
  const chosen = [...new Set(some)].sort()
  const amount = `${Math.floor(Math.random() * 1000)}.${'0'.repeat(writer)}5`
  if (Math.random() < 0.4) {
    const lines = chosen.map((id) => ({
      [KEY[list]]: id,
      [list === 'portfolio' ? 'portfolioId' : 'accountId']: id,
      type: 'UNKNOWN',
      amount: Number(amount),
      valueDateDay: '2025-03-14',
    }))
    const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('')
    const sources = [{ name: 'rows', chunks: Readable.from([Buffer.from(text)]) }]
    await importRows(pool, { type: `${list}-transactions`, connectionId: connection.id, sources })
    return
  }
  const table = sql.table(TABLE[list])
  const key = sql.ref(COLUMN[list])
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
    for (let n = 0; n < 3; n += 1) await oneOf(statements).execute(transaction)
    if (Math.random() < 0.2) throw new RolledBack()
  }
  await db
    .transaction()
    .execute(work)
    .catch((error) => {
      if (!(error instanceof RolledBack)) throw error
    })
}

class RolledBack extends Error {}
