import { sql } from 'kysely'
import t from 'tap'
import { createDatabase, openClient } from '../support/database.ts'
import { newCopy, readAll, readList } from '../support/model/changes.ts'
import { isProblem } from '../support/problem.ts'
import {
  addCaller,
  addConnection,
  type Caller,
  type List,
  listNames,
  lists,
} from '../support/rows.ts'
import { startService } from '../support/service.ts'
import { rememberState } from '../support/state.ts'

/** Cursors when the history of the data changes. */
const { url } = await createDatabase(t)
const { db, get } = await startService(t, { databaseUrl: url })

const poll = (list: List, { token, connection }: Caller, cursor: string) =>
  get(`${connection[list]}?since=${cursor}`, { token })

async function copyOf(list: List, caller: Caller) {
  const copy = newCopy()
  await readAll(get, list, caller, copy)
  return copy
}

for (const list of listNames) {
  const { add } = lists[list]
  const table = sql.table(lists[list].table)
  const key = sql.ref(lists[list].idColumn)
  /** Changes the connection this number of times. */
  const change = async ({ connection }: Caller, times: number) => {
    for (let n = 0; n < times; n += 1) await add(db, connection, {})
  }

  t.test(
    `${list}, a connection is created again with its token: 410, at any version`,
    async (t) => {
      const caller = await addCaller(db)
      const { appId, connection } = caller
      await change(caller, 2)
      const { cursor } = await copyOf(list, caller)
      for (let versions = 0; versions < 4; versions += 1) {
        await db.deleteFrom('connection').where('id', '=', connection.id).execute()
        await addConnection(db, appId, connection.token)
        await change(caller, versions)
        isProblem(t, await poll(list, caller, cursor), 'cursor_expired', `${versions} versions`)
      }
      const copy = await copyOf(list, caller)
      await change(caller, 1)
      t.equal((await poll(list, caller, copy.cursor)).status, 200)
    },
  )

  t.test(`${list}, an empty connection is created again: 410`, async (t) => {
    const caller = await addCaller(db)
    const { appId, connection } = caller
    const { cursor } = await copyOf(list, caller)
    t.equal((await poll(list, caller, cursor)).status, 200)
    await change(caller, 1)
    t.equal((await poll(list, caller, cursor)).json().items.length, 1)
    await db.deleteFrom('connection').where('id', '=', connection.id).execute()
    await addConnection(db, appId, connection.token)
    isProblem(t, await poll(list, caller, cursor), 'cursor_expired')
  })

  t.test(`${list}, commits are lost: 410 for their cursors only`, async (t) => {
    const [caller, other] = [await addCaller(db), await addCaller(db)]
    for (const each of [caller, other]) await change(each, 2)
    const earlier = await copyOf(list, caller)
    await change(caller, 1)
    const kept = await copyOf(list, caller)
    const ofOther = await copyOf(list, other)
    const restore = await rememberState(db)
    await change(caller, 3)
    const partial = await get(`${caller.connection[list]}?since=start&limit=1`, caller)
    const lost = [await copyOf(list, caller)]
    await change(caller, 1)
    lost.push(await copyOf(list, caller))
    // A second restore of the same backup loses changes that were made after the first one.
    for (const round of [1, 2]) {
      await restore()
      for (let changes = 0; changes < 6; changes += 1) {
        for (const { cursor } of lost)
          isProblem(t, await poll(list, caller, cursor), 'cursor_expired')
        isProblem(t, await poll(list, caller, partial.json().nextCursor), 'cursor_expired')
        await change(caller, 1)
      }
      lost.push(await copyOf(list, caller))
      for (const [reader, copy] of [
        [caller, earlier],
        [caller, kept],
        [other, ofOther],
      ] as const) {
        const followed = { cursor: copy.cursor, rows: new Map(copy.rows) }
        await readAll(get, list, reader, followed)
        t.same(followed.rows, await readList(get, list, reader), `round ${round}`)
      }
    }
  })

  t.test(`${list}, commits are lost behind a clock that steps back: 410`, async (t) => {
    const caller = await addCaller(db)
    await change(caller, 1)
    await sql`update connection set changed_at = now() + interval '1 hour'
      where id = ${caller.connection.id}`.execute(db)
    const restore = await rememberState(db)
    await change(caller, 1)
    const { cursor } = await copyOf(list, caller)
    await restore()
    await change(caller, 1)
    isProblem(t, await poll(list, caller, cursor), 'cursor_expired')
  })

  t.test(`${list}, removed rows are put back with their numbers: copies get them`, async (t) => {
    const caller = await addCaller(db)
    const { connection } = caller
    const ids = await add(db, connection, {}, {}, {})
    const client = await openClient(t, url)
    const own = `from ${lists[list].table} where connection_id = ${connection.id}`
    await client.query(`create temporary table kept as select * ${own}`)
    await change(caller, 1)
    const copy = await copyOf(list, caller)
    await client.query(`delete ${own}`)
    await readAll(get, list, caller, copy)
    t.equal(copy.rows.size, 0)
    const { rows } = await sql<{ name: string }>`
      select attname as name from pg_attribute
      where attrelid = ${lists[list].table}::regclass and attnum > 0 and attgenerated = ''`.execute(
      db,
    )
    const columns = rows.map(({ name }) => name).join()
    await client.query(`insert into ${lists[list].table} (${columns}) select ${columns} from kept`)
    await readAll(get, list, caller, copy)
    t.same([...copy.rows.keys()].sort(), ids.sort())
    t.same(copy.rows, await readList(get, list, caller))
  })

  for (const number of [
    '0',
    '1',
    '-1',
    'change_number - 1',
    '9e18::bigint',
    'change_number << 3',
  ]) {
    t.test(`${list}, SQL writes the change number ${number}: copies get the rows`, async (t) => {
      const caller = await addCaller(db)
      const { connection } = caller
      const [id] = await add(db, connection, {}, {}, {})
      const copy = await copyOf(list, caller)
      const set = sql`update ${table} set amount = 8, change_number = ${sql.raw(number)}`
      await sql`${set} where ${key} = ${id}`.execute(db)
      await readAll(get, list, caller, copy)
      t.same(copy.rows, await readList(get, list, caller), 'one row')
      await sql`${set} where connection_id = ${connection.id}`.execute(db)
      await change(caller, 1)
      await readAll(get, list, caller, copy)
      t.same(copy.rows, await readList(get, list, caller), 'all rows')
    })
  }

  t.test(`${list}, a flipped bit: 400`, async (t) => {
    const caller = await addCaller(db)
    const { token, connection } = caller
    await change(caller, 3)
    const complete = await copyOf(list, caller)
    const first = await get(`${connection[list]}?since=start&limit=1`, { token })
    for (const cursor of [complete.cursor, String(first.json().nextCursor)]) {
      const bytes = Buffer.from(cursor, 'base64url')
      t.equal(bytes.toString('base64url'), cursor)
      const accepted: number[] = []
      for (let bit = 0; bit < bytes.length * 8; bit += 1) {
        const damaged = Buffer.from(bytes)
        damaged[bit >> 3] = (bytes[bit >> 3] ?? 0) ^ (1 << (bit & 7))
        const { status } = await poll(list, caller, damaged.toString('base64url'))
        if (status !== 400) accepted.push(bit)
      }
      t.same(accepted, [], `${bytes.length * 8} bits`)
    }
  })

  t.test(`${list}, a cursor of release 1.0.0: 410`, async (t) => {
    const caller = await addCaller(db)
    const cursor = Buffer.alloc(20, 1).toString('base64url')
    isProblem(t, await poll(list, caller, cursor), 'cursor_expired')
  })
}

t.test('TRUNCATE of the transfer orders: cursors of both lists are valid', async (t) => {
  const caller = await addCaller(db)
  const cursors = new Map<List, string>()
  for (const list of listNames) {
    await lists[list].add(db, caller.connection, {})
    cursors.set(list, (await copyOf(list, caller)).cursor)
  }
  await sql`truncate assets_transfer_order`.execute(db)
  for (const [list, cursor] of cursors) t.equal((await poll(list, caller, cursor)).status, 200)
})
