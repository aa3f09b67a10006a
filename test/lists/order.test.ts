import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import t, { type Test } from 'tap'
import { randomOf } from '../support/random.ts'
import {
  addAccountTransactions,
  addCaller,
  addConnection,
  addPortfolioTransactions,
  addTransferOrders,
  listNames,
  lists,
} from '../support/rows.ts'
import { startService } from '../support/service.ts'

const { db, get } = await startService(t)

const random = randomOf('order of rows')
const inRandomOrder = <T>(rows: T[]) =>
  rows
    .map((row): [number, T] => [random.next(), row])
    .sort(([a], [b]) => a - b)
    .map(([, row]) => row)

for (const list of listNames) {
  const { add, id, idColumn } = lists[list]

  t.test(
    `${list}: ordered by day, hour with nulls last, and id, descending (contract 8)`,
    async (t) => {
      const { token, connection } = await addCaller(db)
      const expected = [
        ['2025-01-03', null, '00000000-0000-4000-8000-000000000001'],
        ['2025-01-02', '23:59:59', '00000000-0000-4000-8000-000000000002'],
        ['2025-01-02', '09:30:00', 'ffffffff-ffff-4fff-bfff-ffffffffffff'],
        ['2025-01-02', '09:30:00', 'a0000000-0000-4000-8000-000000000000'],
        ['2025-01-02', '09:30:00', '9fffffff-ffff-4fff-bfff-ffffffffffff'],
        ['2025-01-02', '', 'ffffffff-ffff-4fff-bfff-fffffffffffe'],
        ['2025-01-02', null, 'ffffffff-ffff-4fff-bfff-fffffffffffd'],
        ['2025-01-02', null, '00000000-0000-4000-8000-000000000000'],
        ['2025-01-01', '12:00:00', '00000000-0000-4000-8000-000000000003'],
      ]
      const rows = expected.map(([day, hour, key]) => ({
        operation_date_day: day,
        operation_date_hour: hour,
        [idColumn]: key,
      }))
      await add(db, connection, ...(inRandomOrder(rows) as object[]))
      for (const query of ['', '?from=2025-01-01', '?limit=9', '?from=2025-01-01&to=2025-01-03']) {
        const { items } = (await get(connection[list] + query, { token })).json()
        const got = items.map((item: Record<string, string>) => [
          item.operationDateDay,
          item.operationDateHour,
          item[id],
        ])
        t.strictSame(got, expected, query)
      }
    },
  )

  t.test(`${list}: hours are ordered by their bytes (contract 8 and 13)`, async (t) => {
    const { token, connection } = await addCaller(db)
    const hours = [
      '9:05',
      '09:05:00',
      '10:00',
      'ñ',
      'z',
      'Z',
      'é',
      'e\u0301',
      '朝',
      '😀',
      '\uffee',
      ' ',
    ]
    await add(db, connection, ...hours.map((hour) => ({ operation_date_hour: hour })))
    const { items } = (await get(connection[list], { token })).json()
    const got = items.map((item: Record<string, string>) => item.operationDateHour)
    const bytes = (text: string) => Buffer.from(text, 'utf8')
    t.strictSame(
      got,
      hours.toSorted((a, b) => bytes(b).compare(bytes(a))),
    )
  })

  t.test(
    `${list}: a row without operation date is ordered by its value date (contract 4, 8)`,
    async (t) => {
      const { token, connection } = await addCaller(db)
      await add(
        db,
        connection,
        { value_date_day: '2025-01-02', operation_date_hour: '08:00:00', description: 'b' },
        { operation_date_day: '2025-01-02', operation_date_hour: '09:00:00', description: 'a' },
        { operation_date_day: '2025-01-02', operation_date_hour: '07:00:00', description: 'c' },
        // The hour of the value date does not count.
        { value_date_day: '2025-01-02', value_date_hour: '23:00:00', description: 'd' },
      )
      const { items } = (await get(connection[list], { token })).json()
      t.equal(items.map((item: Record<string, string>) => item.description).join(''), 'abcd')
    },
  )

  t.test(`${list}: pages of any size return each row of a day once (contract 8)`, async (t) => {
    const { token, connection } = await addCaller(db)
    const ids = Array.from({ length: 23 }, () => randomUUID())
    const rows = ids.map((key, i) => ({
      [idColumn]: key,
      operation_date_hour: i % 3 === 0 ? null : '10:00:00',
      operation_date_day: i < 20 ? '2025-01-02' : '2025-01-01',
    }))
    await add(db, connection, ...rows)
    const walk = async (limit: number) => {
      const seen: string[] = []
      for (let page = 0; page * limit < ids.length; page += 1) {
        const response = await get(`${connection[list]}?limit=${limit}&page=${page}`, { token })
        seen.push(...response.json().items.map((item: Record<string, string>) => item[id]))
      }
      return seen
    }
    const whole = await walk(1000)
    t.strictSame(whole.toSorted(), ids.toSorted(), 'every row once')
    for (const limit of [1, 2, 7, 22, 23]) t.strictSame(await walk(limit), whole, `limit=${limit}`)
  })
}

t.test('lists without their indexes: the same order (contract 8)', async (t) => {
  const { db, get } = await startService(t)
  const indexes = await sql<{ name: string }>`
    select indexrelid::regclass::text as name from pg_index
    where indrelid::regclass::text ~ '_(transaction|order)$' and not indisunique`.execute(db)
  t.ok(indexes.rows.length >= 3, 'one for each list')
  for (const { name } of indexes.rows) await sql`drop index ${sql.raw(name)}`.execute(db)
  const { token, connection } = await addCaller(db)
  const rows = Array.from({ length: 40 }, () => ({}))
  const ids = {
    portfolio: await addPortfolioTransactions(db, connection, ...rows),
    account: await addAccountTransactions(db, connection, ...rows),
    orders: await addTransferOrders(db, connection, ...rows),
  }
  const newestFirst = (list: keyof typeof ids) => ids[list].toSorted().toReversed()
  for (const list of listNames) {
    const idsOf = async (query: string) =>
      (await get(`${connection[list]}?${query}`, { token }))
        .json()
        .items.map((item: Record<string, string>) => item[lists[list].id])
    for (const query of ['', 'from=2025-01-01', 'from=2024-12-31&to=2025-02-01'])
      t.strictSame(await idsOf(query), newestFirst(list), `${list}?${query}`)
    t.strictSame(await idsOf('limit=30&page=1'), newestFirst(list).slice(30), `later page: ${list}`)
  }
  const orders = (await get(connection.orders, { token })).json()
  t.strictSame(
    orders.map((order: { id: string }) => order.id),
    newestFirst('orders'),
  )
})

/** Returns a function that lists the descriptions of the rows that match a query. */
function descriptionsOf(t: Test, path: string, token: string) {
  return async (query: string): Promise<string> => {
    const { items, totalItems } = (await get(`${path}?${query}`, { token })).json()
    t.equal(totalItems, items.length, 'the total counts the matching rows')
    return items.map((item: Record<string, string>) => item.description).join(' ')
  }
}

for (const list of listNames) {
  t.test(`${list}: from and to are inclusive, and each is optional (contract 3)`, async (t) => {
    const { token, connection } = await addCaller(db)
    const days = ['2024-02-28', '2024-02-29', '2024-03-01']
    const rows = days.map((day) => ({ operation_date_day: day, description: day }))
    await lists[list].add(db, connection, ...rows)
    const find = descriptionsOf(t, connection[list], token)
    t.equal(await find(''), '2024-03-01 2024-02-29 2024-02-28')
    t.equal(await find('from=2024-02-29'), '2024-03-01 2024-02-29')
    t.equal(await find('to=2024-02-29'), '2024-02-29 2024-02-28')
    t.equal(await find('from=2024-02-29&to=2024-02-29'), '2024-02-29')
    t.equal(await find('from=2024-02-28&to=2024-03-01'), '2024-03-01 2024-02-29 2024-02-28')
    t.equal(await find('from=2024-03-02'), '')
    t.equal(await find('to=2024-02-27'), '')
  })

  t.test(`${list}: the operation date counts, else the value date (contract 4)`, async (t) => {
    const { token, connection } = await addCaller(db)
    await lists[list].add(
      db,
      connection,
      { operation_date_day: '2025-01-10', value_date_day: '2025-03-10', description: 'both' },
      { operation_date_day: '2025-01-11', description: 'operation' },
      { value_date_day: '2025-01-12', description: 'value' },
    )
    const find = descriptionsOf(t, connection[list], token)
    t.equal(await find(''), 'value operation both')
    t.equal(await find('from=2025-01-10&to=2025-01-10'), 'both', 'its value date does not count')
    t.equal(await find('from=2025-03-10&to=2025-03-10'), '')
    t.equal(await find('from=2025-01-12'), 'value', 'every row has an effective date')
  })

  t.test(`${list}: the original dates and all hours do not count (contract 4)`, async (t) => {
    const { token, connection } = await addCaller(db)
    await lists[list].add(db, connection, {
      operation_date_day: '2025-01-10',
      operation_date_hour: '23:59:59',
      original_operation_date_day: '2025-01-11',
      original_operation_date_hour: '00:59:59',
      original_operation_date_tz: 'Pacific/Kiritimati',
      original_value_date_day: '2025-01-12',
      value_date_hour: '24:00:00',
      description: 'row',
    })
    const find = descriptionsOf(t, connection[list], token)
    t.equal(await find('from=2025-01-10&to=2025-01-10'), 'row')
    t.equal(await find('from=2025-01-11'), '')
  })

  t.test(`${list}: years 0001 and 9999 are valid (contract 3)`, async (t) => {
    const { token, connection } = await addCaller(db)
    const days = ['0001-01-01', '9999-12-31']
    const rows = days.map((day) => ({ operation_date_day: day, description: day }))
    await lists[list].add(db, connection, ...rows)
    const find = descriptionsOf(t, connection[list], token)
    t.equal(await find('from=0001-01-01&to=9999-12-31'), '9999-12-31 0001-01-01')
    t.equal(await find('from=9999-12-31'), '9999-12-31')
    t.equal(await find('to=0001-01-01'), '0001-01-01')
  })
}

t.test('transfer orders', async (t) => {
  const { db, get } = await startService(t)

  t.test('200: an array, empty without orders (section 2.7)', async (t) => {
    const { token, connection } = await addCaller(db)
    const response = await get(connection.orders, { token })
    t.equal(response.text, '[]')
    t.equal(response.headers.get('content-type'), 'application/json; charset=utf-8')
  })

  t.test('200: only completed orders of the connection (contract 15)', async (t) => {
    const { appId, token, connection } = await addCaller(db)
    await addTransferOrders(
      db,
      connection,
      { name: 'completed' },
      { name: 'pending', completed_at: null },
    )
    await addTransferOrders(db, await addConnection(db, appId), { name: 'of another connection' })
    const names = async () =>
      (await get(connection.orders, { token })).json().map((order: { name: string }) => order.name)
    t.strictSame(await names(), ['completed'])

    const set = (completed_at: Date | null, name: string) =>
      db
        .updateTable('assets_transfer_order')
        .set({ completed_at })
        .where('connection_id', '=', connection.id)
        .where('name', '=', name)
        .execute()
    await set(new Date('2025-06-01T00:00:00Z'), 'pending')
    t.strictSame(await names(), ['pending', 'completed'], 'as soon as it is completed')
    await set(null, 'completed')
    t.strictSame(await names(), ['pending'])
  })

  t.test('200: ordered by completion and id, descending (contract 8)', async (t) => {
    const { token, connection } = await addCaller(db)
    const expected = [
      ['2025-01-02T00:00:00.000002Z', '00000000-0000-4000-8000-000000000000'],
      ['2025-01-02T00:00:00.000001Z', 'ffffffff-ffff-4fff-bfff-ffffffffffff'],
      ['2025-01-02T01:00:00.000000+02:00', 'f0000000-0000-4000-8000-000000000000'],
      ['2025-01-01T23:00:00.000000Z', 'a0000000-0000-4000-8000-000000000000'],
      ['2025-01-01T23:00:00.000000Z', '9fffffff-ffff-4fff-bfff-ffffffffffff'],
      ['1969-12-31T23:59:59.999999Z', 'ffffffff-ffff-4fff-bfff-fffffffffffe'],
    ] as const
    const orders = expected.map(([completed_at, id]) => ({ completed_at, id }) as object)
    await addTransferOrders(db, connection, ...orders.toReversed())
    const response = (await get(connection.orders, { token })).json()
    t.strictSame(
      response.map(({ id }: { id: string }) => id),
      expected.map(([, id]) => id),
    )
  })

  t.test('200: all orders in one response (section 4.3)', async (t) => {
    const { token, connection } = await addCaller(db)
    await addTransferOrders(db, connection, ...Array.from({ length: 2_500 }, () => ({})))
    t.equal((await get(connection.orders, { token })).json().length, 2_500)
  })
})
