import { readFile } from 'node:fs/promises'
import t, { type Test } from 'tap'
import { DEMO } from '../../seeds/sample-data.ts'
import { advance } from '../../seeds/seed.ts'
import { openPool } from '../support/database.ts'
import { addresses } from '../support/rows.ts'
import { startSeededService } from '../support/seeded-service.ts'
import { type Figures, type Holding, type Row, walk, yearsOf } from './calculator.ts'
import { checkHistory } from './invariants.ts'

interface State {
  day: string
  afterDays: number
  positions: Holding[]
  years: Record<string, Figures>
  firstGap?: { portfolioId: string; investment: string; day: string } & Record<string, string>
}

const file = new URL('../../seeds/expected.json', import.meta.url)
const expected = JSON.parse(await readFile(file, 'utf8')) as Record<string, State[]>
const { get, databaseUrl } = await startSeededService(t)
const pool = openPool(t, databaseUrl)

/** Reads all rows of a connection, with decimals as text. */
async function rowsOf(token: string) {
  const isOther = token === DEMO.tax.connections.other.token
  const app = isOther ? DEMO.tax.token : DEMO.wealth.token
  const headers = { accept: 'application/json;IEEE754Compatible=true' }
  const { portfolio, account } = addresses(token)
  const read = async (path: string): Promise<Row[]> => {
    const response = await get(`${path}?limit=10000`, { token: app, headers })
    const { items, totalItems } = response.json()
    t.equal(items.length, totalItems)
    return items
  }
  return { portfolio: await read(portfolio), account: await read(account) }
}

const { gap, ...possible } = DEMO.wealth.connections
const connections = [...Object.values(possible), ...Object.values(DEMO.tax.connections)]

/** Checks all connections, and counts what is in them. */
async function checkAll(t: Test, name: string) {
  await t.test(`${name}: each history is possible`, async (t) => {
    const total = { rows: 0, movements: 0, statements: 0, days: 0 }
    for (const { token } of connections) {
      const { portfolio, account } = await rowsOf(token)
      const { problems, counts } = checkHistory(portfolio, account)
      t.strictSame(problems.slice(0, 5), [], token)
      for (const key of ['rows', 'movements', 'statements', 'days'] as const)
        total[key] += counts[key]
    }
    t.ok(total.rows > 5_000 && total.statements > 900, JSON.stringify(total))
    t.comment(JSON.stringify(total))
  })
}

/** Compares stories with their state after some days. */
async function checkStories(t: Test, days: number, only = Object.keys(expected)) {
  for (const token of only) {
    const state = expected[token]?.findLast(({ afterDays }) => afterDays <= days)
    await t.test(`${token} after ${days} days: the figures of expected.json`, async (t) => {
      const { portfolio, account } = await rowsOf(token)
      const { holdings, statements, negative } = walk(portfolio)
      t.strictSame(holdings, state?.positions)
      t.strictSame(yearsOf(portfolio, account), state?.years)
      t.strictSame(negative, [])
      const [gap] = statements.filter(({ stated, computed }) => !stated.equals(computed))
      const firstGap = gap && {
        portfolioId: gap.row.portfolioId,
        investment: gap.row.investment,
        day: gap.row.operationDateDay,
        expected: gap.stated.decimal,
        found: gap.computed.decimal,
      }
      t.strictSame(firstGap, state?.firstGap)
    })
  }
}

t.test('each story is in expected.json, and each state of it begins on its day', async (t) => {
  const { large, empty, ...stories } = DEMO.wealth.connections
  const tokens = Object.values(stories).map(({ token }) => token)
  t.strictSame(Object.keys(expected).sort(), tokens.sort())
  t.ok(expected[gap.token]?.[0]?.firstGap)
})

t.test('before the first demo advance', async (t) => {
  await checkStories(t, 0)
  await checkAll(t, '2025-12-31')
})

t.test('demo advance, day by day: each story changes on its day, and not before', async (t) => {
  const moving = Object.keys(expected).filter((token) => expected[token]?.[1])
  t.equal(moving.length, 4)
  for (const days of [1, 2, 3, 4, 5]) {
    const { day } = await advance(pool, 1)
    const starting = moving.filter((token) => expected[token]?.[1]?.day === day)
    t.strictSame(
      starting,
      moving.filter((token) => expected[token]?.[1]?.afterDays === days),
      day,
    )
    await checkStories(t, days, moving)
  }
})

t.test('after 400 days of demo advance', async (t) => {
  const { day } = await advance(pool, 395)
  t.equal(day, '2027-07-14')
  await checkStories(t, 400)
  await checkAll(t, day)
})

t.test('credentials that fail: an expired token, and a connection of another app', async (t) => {
  const { portfolio } = addresses(DEMO.wealth.connections.split.token)
  const expired = await get(portfolio, { token: DEMO.wealth.expiredToken })
  t.match([expired.status, expired.json()], [401, { code: 'expired_token' }])
  const other = await get(portfolio, { token: DEMO.tax.token })
  t.match([other.status, other.json()], [404, { code: 'connection_not_found' }])
})
