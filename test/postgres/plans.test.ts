import { type Kysely, sql } from 'kysely'
import type pg from 'pg'
import t, { type Test } from 'tap'
import { readConfig } from '../../src/config.ts'
import { clientConfig } from '../../src/postgres/connect.ts'
import type { Tables } from '../../src/postgres/tables.ts'
import { lists } from '../../src/routes/lists.ts'
import { databaseOptions } from '../../src/service.ts'
import { createDatabase, openPool } from '../support/database.ts'
import { loginOfService, openAsOwner } from '../support/logins.ts'
import { statementOf, statements, statementsOf, valuesFor } from '../support/statements.ts'
import { FIRST_REMOVAL, FIRST_ROW, fillFeed, fillTables } from './plans/data.ts'
import { allNodes, explain, type PlanNode, rowsOfNode, rowsRead, tableOf } from './plans/plan.ts'

/** Index condition that finds the rows of each table. */
const DAY_RANGE = /connection_id = .*effective_day >=? .*effective_day <=? /
const MONTHS = /connection_id = .*first_day >= .*first_day <= /
/** The changes since a cursor, and the row with a removed id. */
const CHANGES = /connection_id = .*(change_number > |(transaction|movement)_id >= )/
const KEYS: Record<string, RegExp> = {
  app: /client_id = /,
  app_token: /token_hash\S* = /,
  connection: /app_id = .*\bid = /,
  connection_version: /connection_id = .*data_version = /,
  portfolio_transaction: DAY_RANGE,
  portfolio_transaction_month: MONTHS,
  portfolio_transaction_removal: CHANGES,
  account_transaction: DAY_RANGE,
  account_transaction_month: MONTHS,
  account_transaction_removal: CHANGES,
  assets_transfer_order: /connection_id = /,
}

const CHANGE_KEYS = { portfolio_transaction: CHANGES, account_transaction: CHANGES }

const all = [...statements.values()]

/** Titles of the statements whose plans this file checks. */
const CHECKED = [
  'account_transaction changes',
  'account_transaction first page',
  'account_transaction first page of days',
  'account_transaction first page of months',
  'account_transaction later page',
  'account_transaction total',
  'assets_transfer_order',
  'lookup',
  'portfolio_transaction changes',
  'portfolio_transaction first page',
  'portfolio_transaction first page of days',
  'portfolio_transaction first page of months',
  'portfolio_transaction later page',
  'portfolio_transaction total',
].flatMap((subject) => [`${subject} by clientId`, `${subject} by tokenHash`])

const titlesOf = (statements: readonly { title: string }[]) =>
  statements.map(({ title }) => title).sort()

/** Tables without statistics, until a later test runs `analyze`. */
const filled = await database(t)
await fillTables(filled.db)

t.test('statements: this file checks the plans of all requests', async (t) => {
  t.same(titlesOf(all), CHECKED)
  for (const left of lists) {
    const others = lists.filter((route) => route !== left)
    t.strictNotSame(titlesOf(statementsOf(others)), CHECKED, `without ${left.list.name}`)
  }
})

t.test(
  'page: reads its own rows, and counts rows of the first months of page and range only',
  async (t) => {
    const { url, db } = filled
    const pool = await sessionsOfService(t, db, url)
    const read = async (request: {
      connection?: string
      from?: string
      page?: number
      name?: string
    }) => {
      const { connection = 'connection 7', from = '-infinity', page = 0 } = request
      const name = request.name ?? (page === 0 ? 'first page' : 'later page')
      const statement = statementOf(`portfolio_transaction ${name} by tokenHash`)
      const values = { ...valuesFor({ token: 'app 7' }, connection), from, offset: page * 10 }
      const plan = await explain(pool, statement, values)
      const rows = rowsRead(plan, 'portfolio_transaction', 'Index Scan')
      return { rows, counted: rowsRead(plan, 'portfolio_transaction', 'Index Only Scan') }
    }
    const cost = async (
      what: string,
      request: Parameters<typeof read>[0],
      rows: number,
      counted: number,
    ) => {
      const found = await read(request)
      t.equal(found.rows, rows, `rows of ${what}`)
      t.equal(found.counted, counted, `rows counted for ${what}`)
    }
    await cost('the first page', {}, 10, 0)
    await cost('the second page', { page: 1 }, 10, 13)
    await cost('the last page', { page: 11 }, 10, 57)
    await cost('a page past the end', { page: 12 }, 0, 0)
    const range = { from: '2025-02-24' }
    await cost('the first page of a range', range, 10, 0)
    await cost('the total of a range', { ...range, name: 'total' }, 0, 46)
    await cost('the first page of months', { ...range, name: 'first page of months' }, 10, 46)
    await cost('the first page of days', { ...range, name: 'first page of days' }, 10, 12)
    const absent = { ...range, connection: 'connection 8' }
    await cost('a range of an unknown connection', absent, 0, 0)
    for (const name of ['total', 'first page of days', 'first page of months'])
      await cost(`its ${name}`, { ...absent, name }, 0, 0)
  },
)

t.test(
  'changes: no node reads more rows than a page has, whatever is before and after it',
  async (t) => {
    const { url, db } = await database(t)
    const [removals, rows] = [20_000, 8_000]
    await fillFeed(db, removals, rows)
    const pool = await sessionsOfService(t, db, url)
    const statement = statementOf('portfolio_transaction changes by tokenHash')
    const values = valuesFor({ token: 'app' }, 'connection')
    const check = async (statistics: string) => {
      for (const [place, since] of Object.entries({
        'at the start': 0n,
        'before the removals': 1n,
        'among the removals': FIRST_REMOVAL + BigInt(removals / 2),
        'shortly before their end': FIRST_REMOVAL + BigInt(removals - 500),
        'among the rows': FIRST_ROW + BigInt(rows / 2),
        'at the end': FIRST_ROW + BigInt(rows),
      }))
        for (const limit of [1, 1_000]) {
          const plan = await explain(pool, statement, { ...values, since: String(since), limit })
          const most = allNodes(plan).map(
            (node) => `${rowsOfNode(node)}`.padStart(9) + node['Node Type'],
          )
          const read = Math.max(...allNodes(plan).map(rowsOfNode))
          t.ok(read <= limit + 1, `${statistics}, ${place}, limit ${limit}: ${read} rows`, { most })
        }
    }
    await check('no statistics')
    await sql`analyze`.execute(db)
    await check('statistics')
  },
)

t.test('every statement: reads its rows by index, in index order, and copies none', async (t) => {
  const { url, db } = filled
  await t.test('tables without statistics', (t) => checkPlans(t, db, url))
  await t.test('tables with statistics', async (t) => {
    await sql`analyze`.execute(db)
    await checkPlans(t, db, url)
  })
})

t.test('every statement: reads by index after it was planned on empty tables', async (t) => {
  const { url, db } = await database(t)
  await sql`analyze`.execute(db)
  await checkPlans(t, db, url)
  await fillTables(db)
  await checkPlans(t, db, url)
})

t.test('304, and a poll without changes: reads no row', async (t) => {
  const { url, db } = await database(t)
  const pool = await sessionsOfService(t, db, url)
  for (const [method, caller] of Object.entries({ tokenHash: 'app_token', clientId: 'app' })) {
    const lookup = statementOf(`lookup by ${method}`)
    const tables = new Set(allNodes(await explain(pool, lookup)).map(tableOf))
    tables.delete(undefined)
    t.same([...tables].sort(), [caller, 'connection'])
  }
})

/** Creates a database without autovacuum: only the test changes its statistics. */
async function database(t: Test) {
  const { url } = await createDatabase(t)
  const db = openAsOwner(t, url)
  const { rows } = await sql<{ name: string }>`
    select relname as name from pg_class
    where relkind = 'r' and relname ~ ${`^(${Object.keys(KEYS).join('|')})(_\\d+)?$`}`.execute(db)
  for (const { name } of rows) {
    await sql`alter table ${sql.id(name)} set (autovacuum_enabled = off)`.execute(db)
  }
  return { url, db }
}

async function checkPlans(t: Test, db: Kysely<Tables>, url: string) {
  const pool = await sessionsOfService(t, db, url)
  for (const statement of all) {
    const keys = statement.title.includes('changes') ? { ...KEYS, ...CHANGE_KEYS } : KEYS
    t.same(deviationsOf(await explain(pool, statement), keys), [], statement.title)
  }
}

function deviationsOf(plan: PlanNode, keys: Record<string, RegExp>): string[] {
  return allNodes(plan).flatMap((node) => {
    const type = node['Node Type']
    const table = tableOf(node)
    // The removed ids of a page are sorted.
    if (type === 'Sort' && keys !== KEYS) return []
    if (/Sort|Hash|Materialize|Bitmap|Gather/.test(type)) return [type]
    // PostgreSQL converts one half of a union to the types of the other, column by column and row by row.
    if (node.Alias?.startsWith('*SELECT*')) return [`${type} ${node.Alias}`]
    if (table === undefined) return []
    if (!/^Index (Only )?Scan$/.test(type)) return [`${type} of ${table}`]
    const condition = node['Index Cond'] ?? 'everything'
    return keys[table]?.test(condition) ? [] : [`${type} of ${table} by ${condition}`]
  })
}

/** Opens a pool as the service does, with its role. */
async function sessionsOfService(t: Test, db: Kysely<Tables>, url: string): Promise<pg.Pool> {
  const login = await loginOfService(t, db, url)
  const options = databaseOptions(readConfig({ DATABASE_URL: login }), login)
  return openPool(t, login, clientConfig(options))
}

t.test('references: each has an index that begins with its columns', async (t) => {
  const { rows } = await sql<{ reference: string }>`
    select format('%s: %s', conrelid::regclass, conname) as reference
    from pg_constraint c
    where contype = 'f' and conparentid = 0 and not exists (
      select from pg_index i where i.indrelid = c.conrelid and i.indpred is null
        and (i.indkey::smallint[])[0:array_length(c.conkey, 1) - 1] @> c.conkey)`.execute(filled.db)
  t.same(rows, [], 'the deletion of a row of another table would read the whole table')
})
