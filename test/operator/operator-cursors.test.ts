import { sql } from 'kysely'
import t from 'tap'
import { createDatabase } from '../support/database.ts'
import { isProblem } from '../support/problem.ts'
import { addCaller, type Caller, listNames, lists } from '../support/rows.ts'
import { startService } from '../support/service.ts'
import { operatorHere } from './operator-process.ts'

const { url } = await createDatabase(t)
const { db, get } = await startService(t, { databaseUrl: url })
const run = (...args: string[]) => operatorHere(args, { DATABASE_URL: url })

type List = (typeof listNames)[number]
const TABLE = { portfolio: 'portfolio_transaction', account: 'account_transaction' } as const

const since = ({ token, connection }: Caller, list: List, cursor: string) =>
  get(`${connection[list]}?since=${cursor}`, { token })

async function cursorOf(caller: Caller, list: List, cursor = 'start'): Promise<string> {
  return (await since(caller, list, cursor)).json().nextCursor
}

/** Removes all rows of a list and adds one. Their removal happened this number of days ago. */
async function replaceRows({ connection }: Caller, list: List, daysAgo: number): Promise<string> {
  const table = TABLE[list]
  await db.deleteFrom(table).where('connection_id', '=', connection.id).execute()
  await sql`update ${sql.table(`${table}_removal`)}
    set removed_at = now() - make_interval(days => ${daysAgo})
    where connection_id = ${connection.id} and removed_at > now() - interval '1 day'`.execute(db)
  const [id = ''] = await lists[list].add(db, connection, {})
  return id
}

const removals = async (list: List, { connection }: Caller) => {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int from ${sql.table(`${TABLE[list]}_removal`)}
    where connection_id = ${connection.id}`.execute(db)
  return rows[0]?.count
}

for (const list of listNames) {
  t.test(`prune, ${list}: removals of 400 days stay; older cursors return 410`, async (t) => {
    const [caller, other] = [await addCaller(db), await addCaller(db)]
    for (const each of [caller, other]) await lists[list].add(db, each.connection, {})
    const first = await cursorOf(caller, list)
    const ofOther = await cursorOf(other, list)
    const id = await replaceRows(caller, list, 401)
    const second = await cursorOf(caller, list, first)
    await replaceRows(caller, list, 399)

    const { json, stdout } = await run('prune', '--json')
    t.same(json(), { days: 400, removals: 1, connections: 1 }, stdout)
    t.equal(await removals(list, caller), 1)
    isProblem(t, await since(caller, list, first), 'cursor_expired')
    t.same((await since(caller, list, second)).json().removed, [id])
    t.equal((await since(other, list, ofOther)).status, 200, 'another connection')
    t.equal(
      (await run('prune')).stdout,
      '0 removals deleted; older cursors of 0 connections expired.\n',
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

t.test('expire-cursors: each cursor returns 410, and new ones work', async (t) => {
  const caller = await addCaller(db)
  for (const list of listNames) await lists[list].add(db, caller.connection, {})
  const old = { portfolio: '', account: '' }
  for (const list of listNames) old[list] = await cursorOf(caller, list)
  const etag = String((await since(caller, 'account', 'start')).headers.get('etag'))
  t.match((await run('expire-cursors')).stdout, /^All cursors of \d+ connections have expired\.\n$/)
  for (const list of listNames) {
    isProblem(t, await since(caller, list, old[list]), 'cursor_expired')
    const next = await cursorOf(caller, list)
    const id = await replaceRows(caller, list, 0)
    const page = (await since(caller, list, next)).json()
    t.equal(page.removed.length, 1)
    t.match(JSON.stringify(page.items), id)
    isProblem(t, await since(caller, list, old[list]), 'cursor_expired')
  }
  t.not((await since(caller, 'account', 'start')).headers.get('etag'), etag)
  const before = await cursorOf(caller, 'account')
  t.ok((await run('expire-cursors', '--json')).json().connections > 0)
  isProblem(t, await since(caller, 'account', before), 'cursor_expired', 'the second time')
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
    const key = sql.ref(list === 'portfolio' ? 'transaction_id' : 'movement_id')
    const remove = async (id: string, daysAgo: number) => {
      await sql`delete from ${sql.table(TABLE[list])} where ${key} = ${id}`.execute(db)
      await sql`update ${sql.table(`${TABLE[list]}_removal`)}
        set removed_at = now() - make_interval(days => ${daysAgo}) where ${key} = ${id}`.execute(db)
    }
    await remove(removed, 401)
    t.equal((await run('prune')).code, 0)
    t.equal(await copyOf(caller, list, 2), '5 of 5', 'after prune')
    t.equal((await run('expire-cursors')).code, 0)
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
