import { sql } from 'kysely'
import t from 'tap'
import { createDatabase } from '../support/database.ts'
import { operatorHere } from '../support/operator-process.ts'
import { isProblem } from '../support/problem.ts'
import { addCaller, type Caller, type List, listNames, lists } from '../support/rows.ts'
import { startService } from '../support/service.ts'
import { expireCursors } from '../support/state.ts'
import { withLengths } from '../support/with-lengths.ts'

const { url } = await createDatabase(t)
const { db, get } = await startService(t, { databaseUrl: url })
const run = (...args: string[]) => operatorHere(args, { DATABASE_URL: url })

const since = ({ token, connection }: Caller, list: List, cursor: string) =>
  get(`${connection[list]}?since=${cursor}`, { token })

async function cursorOf(caller: Caller, list: List, cursor = 'start'): Promise<string> {
  return (await since(caller, list, cursor)).json().nextCursor
}

/** Removes all rows of a list and adds one. Their removal happened this number of days ago. */
async function replaceRows({ connection }: Caller, list: List, daysAgo: number): Promise<string> {
  const table = lists[list].table
  await db.deleteFrom(table).where('connection_id', '=', connection.id).execute()
  await sql`update ${sql.table(`${table}_removal`)}
    set removed_at = now() - make_interval(days => ${daysAgo})
    where connection_id = ${connection.id} and removed_at > now() - interval '1 day'`.execute(db)
  const [id = ''] = await lists[list].add(db, connection, {})
  return id
}

const removals = async (list: List, { connection }: Caller) => {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int from ${sql.table(`${lists[list].table}_removal`)}
    where connection_id = ${connection.id}`.execute(db)
  return rows[0]?.count
}

for (const list of listNames) {
  t.test(`410 ${list}: the cursor between two pages of changes, after prune`, async (t) => {
    const caller = await addCaller(db)
    const ids = await lists[list].add(db, caller.connection, {}, {}, {}, {})
    const page = async (cursor: string) =>
      await get(`${caller.connection[list]}?since=${cursor}&limit=1`, { token: caller.token })
    const copied = await cursorOf(caller, list)
    for (const id of ids.slice(0, 3))
      await sql`delete from ${sql.table(lists[list].table)}
        where ${sql.ref(lists[list].idColumn)} = ${id}`.execute(db)
    const first = (await page(copied)).json()
    t.match(first, withLengths({ removed: [ids[0]], hasMore: true }))
    const second = (await page(first.nextCursor)).json()
    t.match(
      second,
      withLengths({ removed: [ids[1]], hasMore: true }),
      'the next page, without prune',
    )

    t.equal((await run('prune', '--days', '0', '--yes')).code, 0)
    // The third removal is pruned. A page without it would leave its row in the copy of the client.
    isProblem(t, await page(first.nextCursor), 'cursor_expired')
    isProblem(t, await page(second.nextCursor), 'cursor_expired')
    t.equal((await page('start')).json().totalItems, 1)
  })

  t.test(`prune, ${list}: removals of 400 days stay; older cursors return 410`, async (t) => {
    const [caller, other] = [await addCaller(db), await addCaller(db)]
    for (const each of [caller, other]) await lists[list].add(db, each.connection, {})
    const first = await cursorOf(caller, list)
    const ofOther = await cursorOf(other, list)
    const id = await replaceRows(caller, list, 401)
    const second = await cursorOf(caller, list, first)
    await replaceRows(caller, list, 399)

    const { json, stdout } = await run('prune', '--json')
    t.match(json(), { days: 400, removals: 1, connections: 1 }, stdout)
    t.equal(await removals(list, caller), 1)
    isProblem(t, await since(caller, list, first), 'cursor_expired')
    t.same((await since(caller, list, second)).json().removed, [id])
    t.equal((await since(other, list, ofOther)).status, 200, 'another connection')
    t.equal(
      (await run('prune')).stdout,
      '0 removals and 0 versions deleted; older cursors of 0 connections expired.\n',
    )
    t.same((await since(caller, list, 'start')).json().totalItems, 1)
  })
}

t.test('prune with fewer days than guaranteed: only with --yes', async (t) => {
  const caller = await addCaller(db)
  await lists.account.add(db, caller.connection, {})
  const cursor = await cursorOf(caller, 'account')
  await replaceRows(caller, 'account', 2)
  const refused = await run('prune', '--days', '1')
  t.equal(refused.code, 2)
  t.match(refused.stderr, 'guarantees cursors for 400 days')
  t.equal((await run('prune', '--days', 'x')).code, 2)
  t.equal((await since(caller, 'account', cursor)).status, 200)
  t.equal((await run('prune', '--days', '1', '--yes')).code, 0)
  isProblem(t, await since(caller, 'account', cursor), 'cursor_expired')
})

t.test('prune: a cursor returns 410 after 400 days without its version', async (t) => {
  const caller = await addCaller(db)
  const { id } = caller.connection
  const cursors: string[] = []
  for (const daysAgo of [900, 500, 401, 399]) {
    await lists.account.add(db, caller.connection, {})
    await sql`update connection set changed_at = now() - make_interval(days => ${daysAgo})
      where id = ${id}`.execute(db)
    cursors.push(await cursorOf(caller, 'account'))
  }
  t.match((await run('prune', '--json')).json(), { versions: 3, removals: 0, connections: 0 })
  const statuses = () =>
    Promise.all(cursors.map(async (cursor) => (await since(caller, 'account', cursor)).status))
  t.same(await statuses(), [410, 410, 200, 200])
  await lists.account.add(db, caller.connection, {})
  t.equal((await run('prune')).code, 0)
  t.same(await statuses(), [410, 410, 200, 200], 'the last version was current until now')
})

/** Reads a copy in pages. @returns its number of rows, or the status of the first error */
async function copyOf({ token, connection }: Caller, list: List, limit: number) {
  const ids = new Set<string>()
  for (let cursor = 'start', requests = 0; requests < 20; requests += 1) {
    const path = `${connection[list]}?since=${cursor}&limit=${limit}`
    const { status, json } = await get(path, { token })
    if (status !== 200) return `status ${status}`
    const { items, removed, nextCursor, hasMore, totalItems } = json()
    for (const item of items) ids.add(item[lists[list].id])
    for (const id of removed) ids.delete(id)
    if (!hasMore) return `${ids.size} of ${totalItems}`
    cursor = nextCursor
  }
  return 'endless'
}

for (const list of listNames) {
  t.test(`since=start, ${list}: all pages, although rows are older than the horizon`, async (t) => {
    const caller = await addCaller(db)
    const { token, connection } = caller
    const add = () => lists[list].add(db, connection, {}, {}, {})
    const first = await add()
    const [removed = ''] = await add()
    const key = sql.ref(lists[list].idColumn)
    const remove = async (id: string, daysAgo: number) => {
      await sql`delete from ${sql.table(lists[list].table)} where ${key} = ${id}`.execute(db)
      await sql`update ${sql.table(`${lists[list].table}_removal`)}
        set removed_at = now() - make_interval(days => ${daysAgo}) where ${key} = ${id}`.execute(db)
    }
    await remove(removed, 401)
    t.equal((await run('prune')).code, 0)
    t.equal(await copyOf(caller, list, 2), '5 of 5', 'after prune')
    await expireCursors(db)
    t.equal(await copyOf(caller, list, 2), '5 of 5', 'after expiry')
    await add()
    const path = `${connection[list]}?limit=2&since=`
    const { nextCursor } = (await get(`${path}start`, { token })).json()
    await remove(String(first[0]), 401)
    t.equal((await get(path + nextCursor, { token })).status, 200)
    t.equal((await run('prune')).code, 0)
    isProblem(t, await get(path + nextCursor, { token }), 'cursor_expired', 'pruned meanwhile')
    t.equal(await copyOf(caller, list, 3), '7 of 7')
  })
}
