import { readFile } from 'node:fs/promises'
import { type Kysely, sql } from 'kysely'
import t from 'tap'
import { verifyRowCounts } from '../../src/operator/verify.ts'
import { clientConfig } from '../../src/postgres/connect.ts'
import type { Tables } from '../../src/postgres/tables.ts'
import { databaseOptions } from '../../src/service.ts'
import { createDatabase, openClient, openPool } from '../support/database.ts'
import { openAsOwner } from '../support/logins.ts'
import { addCaller, addPortfolioTransactions } from '../support/rows.ts'
import { startService } from '../support/service.ts'
import { statements, valuesFor } from '../support/statements.ts'
import { allNodes, explain, tableOf } from './plans/plan.ts'

/** `TEST_PARTITIONED=true npm test` runs all tests on partitioned tables: see template.ts. */
const partitions = await readFile(
  new URL('../../docs/reference/partitions.sql', import.meta.url),
  'utf8',
)

t.test('docs/reference/partitions.sql changes only the partitions', async (t) => {
  const { url } = await createDatabase(t)
  const db = openAsOwner(t, url)
  const before = await schemaOf(db)
  t.ok(before.length > 20, `${before.length} properties`)
  if (process.env.TEST_PARTITIONED !== 'true') await sql.raw(partitions).execute(db)
  t.same(await schemaOf(db), before)
})

t.test('docs/reference/partitions.sql: error where a table has rows', async (t) => {
  const { url } = await createDatabase(t)
  const db = openAsOwner(t, url)
  const { connection } = await addCaller(db)
  await addPortfolioTransactions(db, connection, {})
  await t.rejects(sql.raw(partitions).execute(db), {
    message: 'table portfolio_transaction already has rows',
  })
})

t.test('200: a page reads one partition, and row counts agree', async (t) => {
  const { url } = await createDatabase(t)
  const owner = openAsOwner(t, url)
  if (process.env.TEST_PARTITIONED !== 'true') await sql.raw(partitions).execute(owner)
  const { get, db, config } = await startService(t, { databaseUrl: url })
  const [{ token, connection }, other] = [await addCaller(db), await addCaller(db)]
  const rows = Array.from({ length: 20 }, (_, n) => ({ operation_date_day: `2025-01-${n + 10}` }))
  const ids = await addPortfolioTransactions(db, connection, ...rows)
  await addPortfolioTransactions(db, other.connection, ...rows)
  await db.deleteFrom('connection').where('id', '=', other.connection.id).execute()
  const page = (await get(`${connection.portfolio}?limit=5&page=1`, { token })).json()
  t.equal(page.totalItems, 20)
  const found = page.items.map(({ transactionId }: { transactionId: string }) => transactionId)
  t.same(found, ids.toReversed().slice(5, 10))
  const counted = await verifyRowCounts(owner)
  t.equal(counted.rows, 20)
  t.same(counted.differences, [])

  const login = String(config.DATABASE_URL)
  const pool = openPool(t, login, clientConfig(databaseOptions(config, login)))
  const values = { ...valuesFor({ token }, connection.token), limit: 5, offset: 5 }
  const lists = [...statements.values()].filter(({ title }) => /page|total/.test(title))
  t.ok(lists.length > 12)
  for (const statement of lists) {
    const nodes = allNodes(await explain(pool, statement, values))
    const split = nodes.filter((node) =>
      /^(portfolio|account)_transaction$/.test(String(tableOf(node))),
    )
    // A page may count rows before it reads rows.
    t.equal(
      new Set(split.map((node) => node['Relation Name'])).size,
      1,
      `${statement.title}: the plan keeps one partition`,
    )
  }
})

t.test('merge that inserts a row before it updates others: counts and changes agree', async (t) => {
  const { url } = await createDatabase(t)
  const owner = openAsOwner(t, url)
  if (process.env.TEST_PARTITIONED !== 'true') await sql.raw(partitions).execute(owner)
  const { get, db } = await startService(t, { databaseUrl: url })
  const { token, connection } = await addCaller(db)
  const january = { operation_date_day: '2025-01-10' }
  const ids = await addPortfolioTransactions(db, connection, january, january, january)
  const first = (await get(`${connection.portfolio}?since=start`, { token })).json()
  const kept = await openClient(t, url)
  await kept.query(`
    create temporary table kept as
      select connection_id, transaction_id, portfolio_id, type, operation_date_day
      from portfolio_transaction order by transaction_id;
    delete from portfolio_transaction where transaction_id = (select transaction_id from kept limit 1);
    merge into portfolio_transaction t using kept k
      on t.connection_id = k.connection_id and t.transaction_id = k.transaction_id
      when matched then update set operation_date_day = '2025-02-10'
      when not matched then insert (connection_id, transaction_id, portfolio_id, type, operation_date_day)
        values (k.connection_id, k.transaction_id, k.portfolio_id, k.type, k.operation_date_day)`)
  const { rows, differences, numbers } = await verifyRowCounts(owner)
  t.same({ rows, differences, numbers }, { rows: 3, differences: [], numbers: [] })
  const february = (await get(`${connection.portfolio}?from=2025-02-01`, { token })).json()
  t.equal(february.totalItems, 2)
  const changes = (await get(`${connection.portfolio}?since=${first.nextCursor}`, { token })).json()
  const changed = changes.items.map(({ transactionId }: { transactionId: string }) => transactionId)
  t.same(changed.sort(), ids.toSorted(), 'the feed has each row')
  t.same(changes.removed, [], 'and no removal')
})

/** Returns keys, checks, indexes, triggers, policies, privileges and columns of both tables. */
async function schemaOf(db: Kysely<Tables>): Promise<string[]> {
  const { rows } = await sql<{ property: string }>`
    with tables as (
      select oid from pg_class
      where oid in ('portfolio_transaction'::regclass, 'account_transaction'::regclass))
    select oid::regclass || ' ' || property as property from tables, lateral (
      select conname || ' ' || pg_get_constraintdef(c.oid) from pg_constraint c where conrelid = tables.oid
      union all select replace(pg_get_indexdef(indexrelid), ' ONLY ', ' ')
        from pg_index where indrelid = tables.oid
      union all select pg_get_triggerdef(g.oid) from pg_trigger g where tgrelid = tables.oid and not tgisinternal
      union all select polname || ' ' || polroles::regrole[]::text || pg_get_expr(polqual, polrelid)
        from pg_policy where polrelid = tables.oid
      union all select relrowsecurity || ' ' || coalesce(relacl::text, '') from pg_class where oid = tables.oid
      union all select attname || ' ' || format_type(atttypid, atttypmod) || ' ' || attcollation::regcollation
        from pg_attribute where attrelid = tables.oid and attnum > 0
    ) properties (property) order by 1`.execute(db)
  return rows.map(({ property }) => property)
}
