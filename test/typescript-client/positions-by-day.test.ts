import { deepStrictEqual } from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import {
  type AssetsTransferOrder,
  effectiveDay,
  type PortfolioTransaction,
  type Position,
  positions,
  positionsByDay,
  SqliteStore,
} from '../../clients/typescript/src/index.ts'
import { PortfolioTransactionTypes } from '../../src/schemas/portfolio-transaction.ts'
import { startDrivers } from '../support/clients/drivers.ts'
import { fc, runs } from '../support/random.ts'

/** Positions of each day, and the names of investments. */
const clients = Object.entries(startDrivers(t))

const FIRST_DAY = '2024-02-26'
const DAYS = 9
const LAST_DAY = dayAfter(FIRST_DAY, DAYS - 1)

function dayAfter(day: string, count: number): string {
  return new Date(Date.parse(day) + count * 86_400_000).toISOString().slice(0, 10)
}

/** Types that are frequent in a history, and all others. */
const type = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom('BUY', 'SELL', 'UNKNOWN', 'DIVIDENDS', 'SPLIT_SELL') },
  {
    weight: 1,
    arbitrary: fc.constantFrom(...Object.keys(PortfolioTransactionTypes), 'A_LATER_TYPE'),
  },
)
/** Most histories have a type with both signs: it changes the meaning of earlier rows. */
const titles = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom('1', '2', '40', '100', '1.50', '0') },
  { weight: 3, arbitrary: fc.constantFrom('-1', '-40') },
  { weight: 1, arbitrary: fc.constant(null) },
)
const hour = fc.constantFrom(null, null, '09:00:00', '09:00:01', '15:30:00')
const change = fc.record({
  type,
  titles,
  hour,
  portfolioId: fc.constantFrom('p', 'p', 'q'),
  investment: fc.oneof(
    { weight: 9, arbitrary: fc.constantFrom('x', 'y') },
    { weight: 1, arbitrary: fc.constant(null) },
  ),
  // Some rows are of days before and after the range.
  day: fc.integer({ min: -2, max: DAYS + 2 }).map((count) => dayAfter(FIRST_DAY, count)),
  hasValueDate: fc.boolean(),
  related: fc.option(fc.nat({ max: 30 })),
})
const history = fc.array(change, { maxLength: 30, size: 'max' }).map((changes) =>
  changes.map((each, index) => {
    const row = {
      transactionId: String(index),
      portfolioId: each.portfolioId,
      investment: each.investment,
      type: each.type,
      titles: each.titles,
      operationDateDay: each.hasValueDate ? null : each.day,
      operationDateHour: each.hasValueDate ? null : each.hour,
      valueDateDay: each.hasValueDate ? each.day : null,
      relatedTransaction: each.related === null ? null : String(each.related),
    }
    return row as unknown as PortfolioTransaction
  }),
)

const ORDERS = [
  { id: '1', investment: 'x', name: 'Name of an order', isin: 'ESDEMO000015' },
  { id: '2', investment: 'x', name: 'Name of an order', isin: null },
  { id: '3', investment: 'y', name: 'One name', isin: 'ESDEMO000023' },
  { id: '4', investment: 'y', name: 'Another name', isin: 'ESDEMO000031' },
] as unknown as AssetsTransferOrder[]

const storeOf = (rows: PortfolioTransaction[]) => ({
  portfolioTransactions: () => rows,
  transferOrders: () => ORDERS,
})

/** What positions() gives for a history that ends with a day. */
function positionsUntil(rows: PortfolioTransaction[], day: string): Position[] {
  return positions(storeOf(rows.filter((row) => effectiveDay(row) <= day)))
}

function copyOf(folder: string, rows: PortfolioTransaction[]): string {
  const file = join(folder, `${crypto.randomUUID()}.db`)
  const db = new DatabaseSync(file)
  const store = new SqliteStore(db, 'mine')
  const changes = { copy: 'next' as const, since: null, cursor: 'c', removed: [], state: null }
  const upserts = rows.map((row) => ({ id: row.transactionId, row }))
  store.apply({ ...changes, list: 'portfolio_transactions', upserts })
  store.swap('portfolio_transactions', 'c')
  const orders = ORDERS.map((row) => ({ id: row.id, row }))
  store.apply({ ...changes, list: 'transfer_orders', upserts: orders })
  store.swap('transfer_orders', 'c')
  db.close()
  return file
}

const DAYS_OF_RANGE = Array.from({ length: DAYS }, (_, count) => dayAfter(FIRST_DAY, count))

for (const [language, client] of clients)
  t.test(`${language}: each day is that of a history that ends with it`, async (t) => {
    const folder = t.testdir({})
    const isEqual = async (rows: PortfolioTransaction[]) => {
      const expected = DAYS_OF_RANGE.map((day) => ({ day, positions: positionsUntil(rows, day) }))
      const file = copyOf(folder, rows)
      const range = { from: FIRST_DAY, to: LAST_DAY }
      deepStrictEqual(await client.read(file, 'mine', 'positionsByDay', range), expected)
      for (const { day, positions } of expected)
        deepStrictEqual(await client.read(file, 'mine', 'positions', { to: day }), positions)
    }
    await fc.assert(fc.asyncProperty(history, isEqual), { numRuns: runs(200) })
  })

for (const [language, client] of clients) {
  t.test(`${language}: names of the app come before those of transfer orders`, async (t) => {
    const rows = ['x', 'y', 'z', null].map((investment, index) => ({
      transactionId: String(index),
      portfolioId: 'p',
      investment,
      type: 'BUY',
      titles: '1',
      operationDateDay: FIRST_DAY,
      operationDateHour: null,
      valueDateDay: null,
      relatedTransaction: null,
    })) as unknown as PortfolioTransaction[]
    const file = copyOf(t.testdir({}), rows)
    const naming = async (names?: Record<string, string>) => {
      const given = names === undefined ? {} : { names }
      const found = await client.read(file, 'mine', 'positions', given)
      const range = { from: FIRST_DAY, to: FIRST_DAY, ...given }
      const byDay = await client.read(file, 'mine', 'positionsByDay', range)
      t.strictSame(byDay, [{ day: FIRST_DAY, positions: found }])
      return found.map(({ investment, name, isin }) => [investment, name, isin])
    }
    t.strictSame(await naming(), [
      [null, null, null],
      ['x', 'Name of an order', 'ESDEMO000015'],
      ['y', null, null],
      ['z', null, null],
    ])
    t.strictSame(await naming({ x: 'Mine', z: 'Also mine', toString: 'No investment' }), [
      [null, null, null],
      ['x', 'Mine', 'ESDEMO000015'],
      ['y', null, null],
      ['z', 'Also mine', null],
    ])
  })

  t.test(`${language}: days that are none are refused`, async (t) => {
    const file = copyOf(t.testdir({}), [])
    const day = { from: FIRST_DAY, to: FIRST_DAY }
    const fails = (range: object, message: RegExp, what: 'positions' | 'positionsByDay') =>
      t.rejects(client.read(file, 'mine', what, range), { message })
    for (const wrong of ['2025-02-29', '2025-1-5', '20250105', '2025-W01-1', '', 'today']) {
      await fails({ to: wrong }, /at must be a day such as 2025-03-14/, 'positions')
      await fails({ ...day, from: wrong }, /from_? must be a day such as/, 'positionsByDay')
      await fails({ ...day, to: wrong }, /to must be a day such as/, 'positionsByDay')
    }
    const backwards = { from: LAST_DAY, to: FIRST_DAY }
    await fails(backwards, /from_? must not be after to/, 'positionsByDay')
    const last = { from: '9999-12-30', to: '9999-12-31' }
    t.equal((await client.read(file, 'mine', 'positionsByDay', last)).length, 2)
    const first = { from: '0001-01-01', to: '0001-01-02' }
    t.equal((await client.read(file, 'mine', 'positionsByDay', first)).length, 2)
  })
}

t.test('TypeScript: the rows of the store are read once', (t) => {
  const reads: string[] = []
  const [rows = []] = fc.sample(history, 1)
  const store = {
    portfolioTransactions: () => {
      reads.push('portfolio')
      return rows
    },
    transferOrders: () => {
      reads.push('orders')
      return ORDERS
    },
  }
  t.equal(positionsByDay(store, { from: FIRST_DAY, to: LAST_DAY }).length, DAYS)
  t.strictSame(reads, ['portfolio', 'orders'])
  t.end()
})
