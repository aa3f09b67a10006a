import t from 'tap'
import { addCaller, addConnection, listNames, lists } from '../support/rows.ts'
import { startService } from '../support/service.ts'

const { db, get } = await startService(t)

for (const list of listNames) {
  const { add } = lists[list]

  t.test(`${list}: items, limit, page, totalItems, in this order (section 2.1)`, async (t) => {
    const { token, connection } = await addCaller(db)
    const empty = await get(connection[list], { token })
    t.equal(empty.text, '{"items":[],"limit":1000,"page":0,"totalItems":0}')
    t.equal(empty.headers.get('content-type'), 'application/json; charset=utf-8')
    await add(db, connection, {})
    const { items, ...rest } = (await get(connection[list], { token })).json()
    t.equal(items.length, 1)
    t.strictSame(rest, { limit: 1000, page: 0, totalItems: 1 })
  })

  t.test(`${list}: limit defaults to 1000 and page to 0 (section 8)`, async (t) => {
    const { token, connection } = await addCaller(db)
    await add(db, connection, ...Array.from({ length: 1001 }, () => ({})))
    t.match((await get(connection[list], { token })).json(), {
      items: { length: 1000 },
      limit: 1000,
      page: 0,
      totalItems: 1001,
    })
    const last = await get(`${connection[list]}?page=1`, { token })
    t.match(last.json(), { items: { length: 1 }, limit: 1000, page: 1, totalItems: 1001 })
    const all = await get(`${connection[list]}?limit=10000`, { token })
    t.match(all.json(), { items: { length: 1001 }, limit: 10000, page: 0, totalItems: 1001 })
  })

  t.test(`${list}: limit and page are the values applied, as integers (contract 9)`, async (t) => {
    const { token, connection } = await addCaller(db)
    const { text } = await get(`${connection[list]}?limit=007&page=0000000003`, { token })
    t.equal(text, '{"items":[],"limit":7,"page":3,"totalItems":0}')
  })

  t.test(`${list}: a page past the end has no items and the total (contract 6)`, async (t) => {
    const { token, connection } = await addCaller(db)
    const days = ['2025-01-01', '2025-01-01', '2025-01-02', '2025-01-03']
    await add(db, connection, ...days.map((day) => ({ operation_date_day: day })))
    for (const page of [4, 5, 1000, 2147483647]) {
      const beyond = (await get(`${connection[list]}?limit=1&page=${page}`, { token })).json()
      t.strictSame(beyond, { items: [], limit: 1, page, totalItems: 4 })
      const query = `?limit=1&page=${page}&from=2025-01-02`
      const filtered = (await get(connection[list] + query, { token })).json()
      t.strictSame(filtered, { items: [], limit: 1, page, totalItems: 2 })
    }
  })

  t.test(`${list}: totalItems depends on connection and dates only (contract 9)`, async (t) => {
    const { appId, token, connection } = await addCaller(db)
    const days = ['2025-01-01', '2025-01-01', '2025-01-02', '2025-01-03']
    await add(db, connection, ...days.map((day) => ({ operation_date_day: day })))
    const sibling = await addConnection(db, appId)
    await add(db, sibling, { operation_date_day: '2025-01-02' })
    const other = list === 'portfolio' ? 'account' : 'portfolio'
    await lists[other].add(db, connection, { operation_date_day: '2025-01-02' })

    const total = async (query: string) => {
      const { items, totalItems } = (await get(`${connection[list]}?${query}`, { token })).json()
      return [items.length, totalItems]
    }
    t.strictSame(await total(''), [4, 4])
    t.strictSame(await total('limit=1'), [1, 4])
    t.strictSame(await total('limit=3&page=1'), [1, 4])
    t.strictSame(await total('limit=1&from=2025-01-02'), [1, 2])
    t.strictSame(await total('limit=1&page=1&to=2025-01-01'), [1, 2])
    t.strictSame(await total('from=2025-01-02&to=2025-01-02'), [1, 1])
    t.strictSame(await total('from=2026-01-01'), [0, 0])
  })
}

t.test('concurrent writes: page and total come from one snapshot (contract 9)', async (t) => {
  const { token, connection } = await addCaller(db)
  const rows = Array.from({ length: 40 }, () => ({ operation_date_day: '2025-01-01' }))
  let writing = true
  const writer = (async () => {
    for (let round = 0; round < 60; round += 1) {
      await lists.account.add(db, connection, ...rows)
      await db
        .deleteFrom('account_transaction')
        .where('connection_id', '=', connection.id)
        .execute()
    }
  })().finally(() => {
    writing = false
  })
  const seen = new Set<number>()
  while (writing) {
    for (const query of ['', '?from=2025-01-01', '?to=2025-01-01&limit=40']) {
      const { items, totalItems } = (await get(connection.account + query, { token })).json()
      if (items.length !== totalItems) t.fail(`${items.length} items, but a total of ${totalItems}`)
      seen.add(totalItems)
    }
  }
  await writer
  t.strictSame(
    [...seen].toSorted((a, b) => a - b),
    [0, 40],
    'only these two states occur',
  )
})
