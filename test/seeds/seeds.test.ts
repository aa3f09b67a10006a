import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { sql } from 'kysely'
import t, { type Test } from 'tap'
import { DEMO } from '../../seeds/sample-data.ts'
import { advance, seed } from '../../seeds/seed.ts'
import {
  type Figures,
  type Holding,
  type Row,
  walk,
  yearsOf,
} from '../../src/http/docs-page/calculator.js'
import { AccountTransactionTypes } from '../../src/schemas/account-transaction.ts'
import { columnOf, columnsOf } from '../../src/schemas/fields.ts'
import { lists } from '../../src/schemas/lists.ts'
import { PortfolioTransactionTypes } from '../../src/schemas/portfolio-transaction.ts'
import { openPool } from '../support/database.ts'
import { addresses } from '../support/rows.ts'
import { startSeededService } from '../support/seeded-service.ts'
import { withLengths } from '../support/with-lengths.ts'
import { checkHistory } from './invariants.ts'

const { db, databaseUrl, get } = await startSeededService(t)
const pool = openPool(t, databaseUrl)
const released = JSON.parse(await readFile('docs/reference/releases/openapi-1.0.0.json', 'utf8'))

/** Runs a statement that returns one value. */
async function value(statement: string): Promise<unknown> {
  const { rows } = await sql<{ value: unknown }>`${sql.raw(statement)}`.execute(db)
  return rows[0]?.value
}

const { large, small, empty } = DEMO.wealth.connections
const { other } = DEMO.tax.connections
const request = (connection: { token: string }, path: string, token: string = DEMO.wealth.token) =>
  get(`/api/v1/queries/connections/${connection.token}/${path}`, { token })

t.test('demo tokens: each app reads its own connections only', async (t) => {
  const counts = await Promise.all(
    [large, small, empty].map(async (connection) =>
      (await request(connection, 'portfolios/transactions?limit=1')).json(),
    ),
  )
  const [ofLarge, ofSmall, ofEmpty] = counts.map(({ totalItems }) => totalItems)
  t.ok(ofLarge > 5_000)
  t.ok(ofSmall > 5 && ofSmall <= 20)
  t.equal(ofEmpty, 0)
  t.equal((await request(other, 'portfolios/transactions')).status, 404)
  t.equal((await request(other, 'portfolios/transactions', DEMO.tax.token)).status, 200)
  t.equal((await request(small, 'portfolios/transactions', DEMO.tax.token)).status, 404)
})

t.test('rows: the same in each release, because documents and examples show them', async (t) => {
  const digests: Record<string, string> = {}
  for (const [name, { label }] of Object.entries({ large, small, empty, other })) {
    const hash = createHash('sha256')
    for (const list of lists) {
      const schema = String(list.item.$id)
      if (released.components.schemas[schema] === undefined) continue
      const columns = columnsOf(list.item)
        .filter(({ path }) => isOfRelease(schema, path))
        .map(({ path }) => `${columnOf(path)}::text`)
        .sort()
      const { rows } = await sql<{ row: string }>`
        select json_build_array(${sql.raw(columns.join(', '))})::text as row from ${sql.table(list.table)}
        where connection_id = (select id from connection where label = ${label})
        order by ${sql.ref(columnOf(list.id))}`.execute(db)
      for (const { row } of rows) hash.update(row)
    }
    digests[name] = hash.digest('hex').slice(0, 16)
  }
  t.same(digests, {
    large: '5f887f833b036293',
    small: '704f7f3d9007e839',
    empty: 'e3b0c44298fc1c14',
    other: '28d0e5e357b32d60',
  })
})

/** A later release may add a list or a field: src/http/openapi/guide.md, "Compatibility". */
function isOfRelease(schema: string, path: string): boolean {
  const [field = ''] = path.split('.')
  return field in released.components.schemas[schema].properties
}

t.test('types: every value of both closed lists', async (t) => {
  const types = (table: string) =>
    value(`select array_agg(distinct type::text) as value from ${table}`)
  t.same(
    new Set((await types('portfolio_transaction')) as string[]),
    new Set(Object.keys(PortfolioTransactionTypes)),
  )
  t.same(
    new Set((await types('account_transaction')) as string[]),
    new Set(Object.keys(AccountTransactionTypes)),
  )
})

t.test('large connection: each amount is the number of shares times the price', async (t) => {
  const of = `from portfolio_transaction
    where connection_id = (select id from connection where label = '${large.label}')`
  t.ok(Number(await value(`select count(*) as value ${of}`)) > 5_000)
  t.equal(await value(`select count(*)::int as value ${of} and amount <> titles * price`), 0)
})

t.test('portfolio transactions: each amount in another currency has its rate', async (t) => {
  const { rows } = await sql`
    select distinct c.label, p.type::text, p.currency from portfolio_transaction p
    join connection c on c.id = p.connection_id
    where p.currency <> 'EUR' and p.amount <> 0
      and (p.exchange_rate is null or p.amount_base_currency is null)`.execute(db)
  t.same(rows, [])
  const movements = await sql`
      select distinct c.label, a.type::text, a.currency from account_transaction a
      join connection c on c.id = a.connection_id
      where a.currency <> 'EUR' and a.exchange_rate is null`.execute(db)
  t.same(movements.rows, [])
})

t.test('edge cases: all present', async (t) => {
  const from = 'from portfolio_transaction'
  t.ok(
    Number(await value(`select max(effective_day) - min(effective_day) as value ${from}`)) > 3_600,
  )
  t.ok(Number(await value(`select count(distinct currency) as value ${from}`)) >= 4)
  t.equal(await value(`select max(scale(titles)) as value ${from}`), 30)
  const some: [string, string][] = [
    ['non-ASCII text', `${from} where description ~ '[^ -~]'`],
    [
      'characters beyond the basic plane',
      `${from} where description ~ '[\\U00010000-\\U0010FFFF]'`,
    ],
    ['line breaks', `${from} where description like '%' || chr(10) || '%'`],
    ['quotes', `${from} where description like '%"%'`],
    ['backslashes', `from account_transaction where position(chr(92) in description) > 0`],
    ['only a value date', `${from} where operation_date_day is null`],
    ['no amount', `${from} where amount is null`],
    ['a retention', `${from} where retention_from is not null`],
    ['a related transaction', `${from} where related_transaction is not null`],
    ['orders with companies', 'from assets_transfer_order where marketer_name is not null'],
    ['orders without', 'from assets_transfer_order where marketer_name is null'],
    ['completed orders', 'from assets_transfer_order where completed_at is not null'],
    ['unfinished orders', 'from assets_transfer_order where completed_at is null'],
    [
      'ties on a second',
      `${from} where operation_date_hour is not null group by connection_id, effective_day,
        operation_date_hour having count(*) > 1`,
    ],
  ]
  for (const [name, rest] of some) t.ok(await value(`select 1 as value ${rest} limit 1`), name)
})

t.test('ISINs: correct check digits (ISO 6166)', async (t) => {
  const { rows } = await sql<{ isin: string }>`
    select distinct isin from assets_transfer_order where isin is not null`.execute(db)
  t.ok(rows.length > 0)
  for (const { isin } of rows) {
    const digits = [...isin].map((character) => Number.parseInt(character, 36)).join('')
    const sum = [...digits].toReversed().reduce((total, digit, index) => {
      const weighted = Number(digit) * (1 + (index % 2))
      return total + (weighted > 9 ? weighted - 9 : weighted)
    }, 0)
    t.equal(sum % 10, 0, isin)
  }
})

t.test('second seed, after an advance: no change', async (t) => {
  await advance(pool, 1)
  const everything = async () => {
    const tables = ['app', 'app_token', 'connection', 'portfolio_transaction']
    const others = ['account_transaction', 'assets_transfer_order']
    const counts = ['portfolio_transaction_month', 'account_transaction_month']
    const contents = [...tables, ...others, ...counts].map((table) =>
      value(
        `select md5(string_agg(row, '' order by row)) as value
         from (select (to_jsonb(t) - 'refreshed_at')::text as row from ${table} t) t`,
      ),
    )
    return await Promise.all(contents)
  }
  const before = await everything()
  await seed(pool)
  t.same(await everything(), before)
})

t.test('sample data of an older release: replaced by the next advance', async (t) => {
  const rows = async () => (await request(large, 'portfolios/transactions?limit=10000')).text
  const { day } = await advance(pool, 1)
  const current = await rows()
  const { gap } = DEMO.wealth.connections
  await sql`delete from connection where label = ${gap.label}`.execute(db)
  await sql`update portfolio_transaction set titles = 7 where effective_day < '2017-01-01'`.execute(
    db,
  )
  t.not(await rows(), current)
  t.equal((await advance(pool, 0)).day, day)
  t.equal(await rows(), current)
  t.equal((await request(gap, 'portfolios/transactions')).status, 200)
})

t.test('the sandbox', async (t) => {
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
    t.match([expired.status, expired.json()], withLengths([401, { code: 'expired_token' }]))
    const other = await get(portfolio, { token: DEMO.tax.token })
    t.match([other.status, other.json()], withLengths([404, { code: 'connection_not_found' }]))
  })
})
