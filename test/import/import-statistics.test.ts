import { Kysely, PostgresDialect } from 'kysely'
import type pg from 'pg'
import t, { type Test } from 'tap'
import { deleteApp, deleteConnections, pruneCursors } from '../../src/operator/deletion.ts'
import { importRows } from '../../src/operator/loading/import-rows.ts'
import type { ListName } from '../../src/operator/loading/row-types.ts'
import type { Tables } from '../../src/postgres/tables.ts'
import { allNodes, type PlanNode } from '../postgres/plans/plan.ts'
import { createDatabase, openPool } from '../support/database.ts'
import { accountLine, chunksOf, orderLine, portfolioLine } from '../support/importing.ts'
import { addApp, addConnection } from '../support/rows.ts'

// Each plan of a session, with the statements of triggers, arrives as a notice.
const EXPLAIN =
  '-c session_preload_libraries=auto_explain -c auto_explain.log_min_duration=0 ' +
  '-c auto_explain.log_analyze=on -c auto_explain.log_timing=off -c auto_explain.log_format=json ' +
  '-c auto_explain.log_nested_statements=on -c auto_explain.log_level=notice'

const REMOVED_BY_FILTERS = [
  'Rows Removed by Filter',
  'Rows Removed by Join Filter',
  'Rows Removed by Index Recheck',
] as const

/** Number of rows that all nodes of a plan have read, compared or passed on. */
function work(plan: PlanNode & { [Key in (typeof REMOVED_BY_FILTERS)[number]]?: number }): number {
  return allNodes(plan)
    .map((node: typeof plan) => {
      const rows = REMOVED_BY_FILTERS.reduce(
        (sum, name) => sum + (node[name] ?? 0),
        node['Actual Rows'] ?? 0,
      )
      return rows * (node['Actual Loops'] ?? 0)
    })
    .reduce((sum, rows) => sum + rows, 0)
}

/** Opens a database whose tables were analyzed with this number of rows, and never again; undefined: never. */
async function openObserved(t: Test, analyzedRows?: number) {
  const { url } = await createDatabase(t)
  const pool = openPool(t, url, { options: EXPLAIN, max: 1 })
  let rows = 0
  pool.on('connect', (client) =>
    client.on('notice', ({ message = '' }) => {
      const [, plan] = /^duration: .* plan:\n(.*)$/s.exec(message) ?? []
      if (plan) rows += work(JSON.parse(plan).Plan)
    }),
  )
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) })
  for (const table of await tablesOf(pool))
    await pool.query(`alter table ${table} set (autovacuum_enabled = false)`)
  const appId = await addApp(db, { name: 'first' })
  const first = await addConnection(db, appId)
  const load = (id: string, type: ListName, text: string, replace?: { yes: true }) =>
    importRows(pool, {
      type,
      connectionId: id,
      sources: [{ name: 'rows', chunks: chunksOf(text) }],
      replace,
    })
  if (analyzedRows)
    for (const [type, line] of types) await load(first.id, type, lines(line, 0, analyzedRows))
  if (analyzedRows !== undefined) await pool.query('analyze')
  /** Runs `use`, and returns the number of rows that its statements have read. */
  const rowsOf = async (use: () => Promise<unknown>) => {
    rows = 0
    await use()
    return rows
  }
  return { db, first, load, rowsOf }
}

async function tablesOf(pool: pg.Pool): Promise<string[]> {
  const { rows } = await pool.query(
    `select oid::regclass::text as name from pg_class
     where relnamespace = 'public'::regnamespace and relkind = 'r'`,
  )
  return rows.map(({ name }) => name)
}

const types: [ListName, (id: number) => string][] = [
  ['portfolio-transactions', portfolioLine],
  ['account-transactions', accountLine],
  ['transfer-orders', orderLine],
]

const lines = (line: (id: number) => string, from: number, to: number) =>
  Array.from({ length: to - from }, (_, index) => line(from + index)).join('\n')

const ROWS = 1_000
const CONNECTIONS = 20
/** A plan with a loop over all rows for each row reads a thousand times as many. */
const MOST = 100 * ROWS

for (const analyzed of [0, 60]) {
  t.test(`statistics of ${analyzed} rows: each statement reads a row a few times`, async (t) => {
    const { db, load, rowsOf } = await openObserved(t, analyzed)
    const appId = await addApp(db, { name: 'of many' })
    const { id } = await addConnection(db, appId)
    const isLinear = async (words: string, use: () => Promise<unknown>) => {
      const rows = await rowsOf(use)
      t.ok(rows > 0 && rows <= MOST, `${words}: ${rows} rows`)
    }
    for (const [type, line] of types) {
      const all = lines(line, 0, ROWS)
      await isLinear(`${type}: first load`, () => load(id, type, all))
      await isLinear(`${type}: the same again`, () => load(id, type, all))
      const changed = `${lines(line, 0, ROWS / 2)}\n${lines(line, ROWS, 2 * ROWS)}`
      await isLinear(`${type}: removal and new rows`, () => load(id, type, changed, { yes: true }))
      const description = type === 'transfer-orders' ? '"name":"x"' : '"description":"x"'
      const corrected = lines((row) => `${line(row).slice(0, -1)},${description}}`, ROWS, 2 * ROWS)
      await isLinear(`${type}: correction`, () => load(id, type, corrected))
    }
    await isLinear('prune', () => pruneCursors(db, -1))
    await isLinear('deletion of a connection', () => deleteConnections(db, [id]))
    for (let number = 0; number < CONNECTIONS; number += 1) {
      const connection = await addConnection(db, appId)
      for (const [type, line] of types)
        await load(connection.id, type, lines(line, 0, ROWS / CONNECTIONS))
    }
    await isLinear('deletion of an app', () =>
      deleteApp(db, { name: 'of many', withConnections: true }),
    )
  })
}

t.test('correction of transfer orders without statistics: no loop over all pairs', async (t) => {
  const { first, load, rowsOf } = await openObserved(t)
  const orders = lines(orderLine, 0, ROWS / 2)
  await load(first.id, 'transfer-orders', orders)
  const renamed = orders.replaceAll(/}$/gm, ',"name":"x"}')
  const rows = await rowsOf(() => load(first.id, 'transfer-orders', renamed))
  t.ok(rows > 0 && rows <= MOST, `${rows} rows`)
})
