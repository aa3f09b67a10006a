import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import t from 'tap'
import { createDatabase, openPool } from '../support/database.ts'
import { followChanges, newCopy, type Page, readAll, readList } from '../support/model/changes.ts'
import { runs } from '../support/random.ts'
import { addCaller, addConnection, listNames, lists } from '../support/rows.ts'
import { startService } from '../support/service.ts'
import { isCitus } from '../support/template.ts'

const { url } = await createDatabase(t)
const { db, get } = await startService(t, { databaseUrl: url })
const pool = openPool(t, url, { max: 8 })

for (const list of listNames) {
  const { add } = lists[list]
  const table = lists[list].table

  t.test(`${list}: since=start returns all rows; a cursor returns only changes`, async (t) => {
    const caller = await addCaller(db)
    const { connection } = caller
    const copy = newCopy()
    const empty = await readAll(get, list, caller, copy)
    t.same([empty.items, empty.removed], [[], []])
    t.equal(empty.totalItems, 0)
    const [first, second, third] = await add(db, connection, {}, {}, {})
    const all = await readAll(get, list, caller, copy)
    t.same(all.removed, [])
    t.match(all, { hasMore: false, totalItems: 3 })
    t.same(copy.rows, await readList(get, list, caller))

    await db.deleteFrom(table).where(lists[list].idColumn, '=', String(first)).execute()
    await db
      .updateTable(table)
      .set({ amount: '7.50' })
      .where(lists[list].idColumn, '=', String(second))
      .execute()
    const { json } = await get(`${connection[list]}?since=${copy.cursor}`, { token: caller.token })
    const page: Page = json()
    t.same(
      page.items.map((item) => item[lists[list].id]),
      [second],
    )
    t.same(page.removed, [first])
    t.match(page, { hasMore: false, totalItems: 2 })
    await readAll(get, list, caller, copy)
    t.same([...copy.rows.keys()].sort(), [second, third].sort())
    t.same(copy.rows, await readList(get, list, caller))
  })

  t.test(`${list}: pages are full; removals do not count without earlier rows`, async (t) => {
    const { token, connection } = await addCaller(db)
    await add(db, connection, {}, {}, {})
    await db.deleteFrom(table).where('connection_id', '=', connection.id).execute()
    await add(db, connection, {}, {})
    for (let since = 'start', rest = 1; rest >= 0; rest -= 1) {
      const page: Page = (await get(`${connection[list]}?since=${since}&limit=1`, { token })).json()
      t.equal(page.items.length, 1)
      t.same(page.removed, [])
      t.equal(page.hasMore, rest > 0)
      since = page.nextCursor
    }
  })

  t.test(`${list}: a row that exists again, a new id, another connection`, async (t) => {
    const caller = await addCaller(db)
    const other = { ...caller, connection: await addConnection(db, caller.appId) }
    const [id = '', moved = '', renamed = ''] = await add(db, caller.connection, {}, {}, {})
    const copy = newCopy()
    await readAll(get, list, caller, copy)
    const key = sql.ref(lists[list].idColumn)
    await sql`
      with gone as (delete from ${sql.table(table)} where ${key} = ${id} returning *)
      select from gone`.execute(db)
    await add(db, caller.connection, { [lists[list].idColumn]: id })
    if (isCitus) {
      // Citus rejects an update of the distribution column.
      await sql`delete from ${sql.table(table)} where ${key} = ${moved}`.execute(db)
      await add(db, other.connection, { [lists[list].idColumn]: moved })
    } else
      await sql`update ${sql.table(table)} set connection_id = ${other.connection.id}
        where ${key} = ${moved}`.execute(db)
    const name = randomUUID()
    await sql`update ${sql.table(table)} set ${key} = ${name} where ${key} = ${renamed}`.execute(db)
    await readAll(get, list, caller, copy)
    t.same([...copy.rows.keys()].sort(), [id, name].sort())
    t.same(copy.rows, await readList(get, list, caller))
    const otherCopy = newCopy()
    await readAll(get, list, other, otherCopy)
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

  t.test(`${list}: a poll without changes waits for no lock on the rows`, async (t) => {
    const { token, connection } = await addCaller(db)
    await add(db, connection, {})
    const poll = (since: string) => get(`${connection[list]}?since=${since}`, { token })
    const { items, ...rest }: Page = (await poll('start')).json()
    t.equal(items.length, 1)
    await db.transaction().execute(async (holder) => {
      const tables = sql.join([sql.table(table), sql.table(`${table}_removal`)])
      await sql`lock table ${tables} in access exclusive mode`.execute(holder)
      const { status, json } = await poll(rest.nextCursor)
      t.equal(status, 200)
      t.same(json(), { items: [], ...rest })
    })
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
    t.same(await errorsOf('to=2025-01-02&since=start'), ['to excluded_parameter'])
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
  await followChanges(t, { get, db, pool }, runs(60))
})
