import { randomUUID } from 'node:crypto'
import t from 'tap'
import { connectionKey, tokenHash } from '../../src/postgres/tokens.ts'
import { LOOKUP_COLUMNS } from '../../src/queries/connection.ts'
import { openClient } from '../support/database.ts'
import { randomOf } from '../support/random.ts'
import {
  addAccountTransactions,
  addCaller,
  addPortfolioTransactions,
  addTransferOrders,
  listNames,
  lists,
} from '../support/rows.ts'
import { startService } from '../support/service.ts'
import { statements } from '../support/statements.ts'

const { db, get, databaseUrl } = await startService(t)

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

t.test('order without the indexes: that of the statements (contract 8)', async (t) => {
  const { token, connection } = await addCaller(db)
  const rows = Array.from({ length: 40 }, () => ({}))
  const ids: Record<string, string[]> = {
    portfolio_transaction: await addPortfolioTransactions(db, connection, ...rows),
    account_transaction: await addAccountTransactions(db, connection, ...rows),
    assets_transfer_order: await addTransferOrders(db, connection, ...rows),
  }
  const hash = tokenHash(connection.token)
  const noIndexes = ['indexscan', 'indexonlyscan', 'bitmapscan']
  const off = noIndexes.map((scan) => `-c enable_${scan}=off`).join(' ')
  const owner = await openClient(t, databaseUrl, off)
  for (const { title, text } of statements.values()) {
    const [, table = '', kind = ''] = /^(\w+_\w+)(.*) by tokenHash$/.exec(title) ?? []
    // A lookup reads no rows of the list.
    if (!(table in ids) || kind === ' lookup') continue
    const isFeed = kind === ' changes'
    const offset = kind === ' later page' ? ['0'] : []
    const list = kind ? ['-infinity', 'infinity', '100', ...offset] : ['100']
    const parameters = isFeed ? ['0', '100', '0'] : list
    const values = [tokenHash(token), hash, connectionKey(hash), ...parameters]
    const { rows } = await owner.query({ text, values, rowMode: 'array' })
    // The first row is the lookup; its columns come before those of the list.
    const column = LOOKUP_COLUMNS.length + (isFeed ? 4 : 0)
    const found = rows.slice(1).map((row) => row[column])
    t.strictSame(found, isFeed ? ids[table] : ids[table]?.toSorted().toReversed(), title)
  }
})
