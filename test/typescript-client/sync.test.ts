import t from 'tap'
import { DEMO } from '../../seeds/sample-data.ts'
import {
  type Access,
  type Driver,
  type ListName,
  type Row,
  startDrivers,
} from '../support/clients/drivers.ts'
import { accessOf, readList } from '../support/clients/service.ts'
import { operatorHere } from '../support/operator-process.ts'
import { addCaller, addresses, type Caller, lists } from '../support/rows.ts'
import { DEMO_TOKEN, startSeededService } from '../support/seeded-service.ts'
import { startService } from '../support/service.ts'
import { expireCursors } from '../support/state.ts'

const service = await startService(t)
const { db } = service
const clients = Object.entries(startDrivers(t))

/** The third step classifies rows. */
const STEPS = 4

/** Copy of a client: rows by identifier, and the cursor. */
interface Copy {
  rows: Map<unknown, Row>
  cursor?: string
}

/** Brings a copy up to date, as an app does. */
async function refresh(client: Driver, access: Access, list: ListName, copy: Copy) {
  const { pages, result } = await client.sync(access, list, copy.cursor)
  for (const { upserts, removed, cursor } of pages) {
    for (const row of upserts) copy.rows.set(row[lists[list].id], row)
    for (const id of removed) copy.rows.delete(id)
    copy.cursor = cursor
  }
  return { pages, result }
}

const sorted = (rows: Iterable<Row>) => [...rows].map((row) => JSON.stringify(row)).sort()

/** Adds, corrects, classifies, moves and removes rows. */
async function change(caller: Caller, list: ListName, step: number): Promise<void> {
  const { table, idColumn: id } = lists[list]
  const { connection } = caller
  const dates = { operation_date_day: `2025-02-${String(step + 1).padStart(2, '0')}` }
  const amount = `${step}2345678901234567.${'10'.repeat(step + 1)}`
  const ids = await lists[list].add(
    db,
    connection,
    ...Array.from({ length: 7 }, () => ({ ...dates, amount })),
    { ...dates, type: 'UNKNOWN' },
  )
  const [, first = '', second = '', third = ''] = ids
  await db
    .updateTable(table)
    .set({ amount: `-${amount}0` })
    .where(id, '=', first)
    .execute()
  await db.deleteFrom(table).where(id, '=', second).execute()
  await db.updateTable(table).set({ value_date_day: '2025-03-31' }).where(id, '=', third).execute()
  if (step % 3 !== 0) return
  await db
    .updateTable(table)
    .set({ type: 'DIVIDENDS' })
    .where('connection_id', '=', connection.id)
    .where('type', '=', 'UNKNOWN')
    .execute()
}

for (const list of ['portfolio', 'account'] as const) {
  t.test(`${list}: after each step, the copies equal the table`, async (t) => {
    const caller = await addCaller(db)
    await lists[list].add(db, caller.connection, ...Array.from({ length: 60 }, () => ({})))
    const access = { ...accessOf(service, caller), pageSize: 9 }
    const copies = clients.map(([, client]) => ({ client, copy: { rows: new Map() } as Copy }))
    for (let step = 0; step <= STEPS; step += 1) {
      const table = sorted(await readList(service, caller, list))
      for (const { client, copy } of copies) {
        const { result } = await refresh(client, access, list, copy)
        t.strictSame(sorted(copy.rows.values()), table, `step ${step}`)
        t.match(result, { status: 'complete', cursor: copy.cursor, totalItems: table.length })
      }
      await change(caller, list, step)
    }
  })
}

t.test('sample data: after days of demo advance, the copies equal the table', async (t) => {
  const seeded = await startSeededService(t)
  const { url, databaseUrl } = seeded
  const { token } = DEMO.wealth.connections.large
  const caller = { token: DEMO_TOKEN, connection: { token, ...addresses(token) } }
  const access = { url, token: DEMO_TOKEN, connection: token }
  const copies = clients.flatMap(([, client]) =>
    (['portfolio', 'account'] as const).map((list) => {
      return { client, list, copy: { rows: new Map() } as Copy }
    }),
  )
  for (let day = 0; day <= 3; day += 1) {
    for (const { client, list, copy } of copies) {
      const { pages, result } = await refresh(client, access, list, copy)
      t.match(result, { status: 'complete', totalItems: copy.rows.size }, `day ${day}`)
      if (day > 0) t.equal(pages.length, 1)
      if (day % 3 !== 0) continue
      const table = sorted(await readList(seeded, caller, list))
      // Strings, because the comparison of thousands of values takes seconds.
      t.equal(JSON.stringify(sorted(copy.rows.values())), JSON.stringify(table))
    }
    const ended = await operatorHere(['demo', 'advance'], { DATABASE_URL: databaseUrl })
    t.equal(ended.code, 0, ended.stderr)
  }
})

for (const [language, client] of clients) {
  t.test(`${language}: no changes: one page without rows`, async (t) => {
    const caller = await addCaller(db)
    const access = accessOf(service, caller)
    const copy: Copy = { rows: new Map() }
    await refresh(client, access, 'account', copy)
    const { cursor } = copy
    const { pages, result } = await refresh(client, access, 'account', copy)
    t.strictSame(pages, [{ upserts: [], removed: [], cursor: copy.cursor }])
    t.match(result, { status: 'complete', totalItems: 0 })
    t.equal(copy.cursor, cursor)
  })

  t.test(`${language}: expired cursor: cursor_expired, then a new copy`, async (t) => {
    const caller = await addCaller(db)
    await lists.portfolio.add(db, caller.connection, {}, {})
    const access = accessOf(service, caller)
    const copy: Copy = { rows: new Map() }
    await refresh(client, access, 'portfolio', copy)
    await expireCursors(db)
    const expired = await client.sync(access, 'portfolio', copy.cursor)
    t.strictSame(expired, { pages: [], result: { status: 'cursor_expired' } })
    const empty: Copy = { rows: new Map() }
    t.match((await refresh(client, access, 'portfolio', empty)).result, { totalItems: 2 })
    t.equal(empty.rows.size, 2)
  })
}
