import { type Kysely, sql } from 'kysely'
import t from 'tap'
import type { Tables } from '../../src/postgres/tables.ts'
import { addChangingRows } from '../support/changing-rows.ts'
import { codeBlocks, fillIn } from '../support/documented-commands.ts'
import { addSampleData, recordOk, requestsOf } from '../support/golden-responses.ts'
import { assertNoErrors, startGoldenLoad, startLoad } from '../support/load.ts'
import { openAsOwner } from '../support/logins.ts'
import { operatorHere } from '../support/operator-process.ts'
import { startServiceProcess } from '../support/processes/service-process.ts'
import { libpqVariables, runShell } from '../support/processes/shell.ts'
import { addCaller } from '../support/rows.ts'
import { firstValue, migrate, startDebianPostgres } from '../support/servers/debian-postgres.ts'
import { databaseUrl } from '../support/template.ts'

/** pg_repack on a database in use, with the documented commands. */
const [repack = ''] = codeBlocks('Bring rows together')
const server = await startDebianPostgres(t)
await firstValue(server.url, 'create database investments')
const url = databaseUrl(server.url, 'investments')
const login = await migrate(url)
const db = openAsOwner(t, url)
const callers = await addSampleData(db, 1_000)
const [{ connection } = await addCaller(db)] = callers
await addRowsByDay(db, 200, 100)
const changingCaller = await addCaller(db)
const versions = await addChangingRows(db, changingCaller, 50)

/** Adds rows to new connections: the rows of one day, of all connections, before the next day. */
async function addRowsByDay(db: Kysely<Tables>, connections: number, rows: number) {
  await sql`insert into connection (id, app_id, token_hash)
    select ('x' || encode(substring(hash from 1 for 8), 'hex'))::bit(64)::bigint, app.id, hash
    from (select id from app limit 1) app,
      (select sha256(n::text::bytea) as hash from generate_series(1, ${connections}::integer) n) h
    `.execute(db)
  await sql`insert into portfolio_transaction (connection_id, transaction_id, portfolio_id, type, description,
      operation_date_day)
    select c.id, gen_random_uuid(), gen_random_uuid(), 'BUY', repeat('text ', 20), date '2024-01-01' + n
    from generate_series(1, ${rows}::integer) n, connection c order by n, c.id`.execute(db)
}

/** Counts the blocks that PostgreSQL reads for the newest 50 rows of a connection. */
async function blocksOfPage(): Promise<number> {
  const plan = await firstValue(
    url,
    `explain (analyze, buffers, format json) select * from portfolio_transaction
     where connection_id = (select max(id) from connection where portfolio_transactions = 100)
     order by effective_day desc, operation_date_hour desc nulls last, transaction_id desc limit 50`,
  )
  const [{ Plan }] = plan as [{ Plan: Record<string, number> }]
  return Number(Plan['Shared Hit Blocks']) + Number(Plan['Shared Read Blocks'])
}

/** Properties that pg_repack must keep. */
const properties = () =>
  firstValue(
    url,
    `select json_agg(property order by property) from (
      select pg_get_triggerdef(oid) from pg_trigger where not tgisinternal
      union all select pg_get_constraintdef(oid) from pg_constraint where conrelid <> 0
      union all select polname || pg_get_expr(polqual, polrelid) from pg_policy
      union all select relname || relrowsecurity || coalesce(relacl::text, '') from pg_class
        where relnamespace = 'public'::regnamespace) all_of_them (property)`,
  )

t.test('pg_repack: rows are adjacent, and no response and no change is lost', async (t) => {
  const service = await startServiceProcess(t, { DATABASE_URL: login })
  const golden = await recordOk(service.url, requestsOf(callers))
  const before = { blocks: await blocksOfPage(), properties: await properties() }
  const stopChanges = versions.keepChanging(t, 20)
  const stopLoad = startGoldenLoad(t, { url: service.url, golden, clients: 4 })
  const stopReads = startLoad(t, { clients: 1 }, () => versions.check(service.url))
  const options = {
    'postgres://SUPERUSER@HOST/investments': url,
    '--host HOST --username SUPERUSER ': '',
  }
  const output = await runShell(t, fillIn(repack, options), libpqVariables(server.url))
  t.match(output, /repacking table "public.portfolio_transaction".*"public.account_transaction"/s)
  await stopChanges()
  assertNoErrors(t, await stopReads())
  assertNoErrors(t, await stopLoad())
  t.equal(await versions.check(service.url), 'ok', 'the last change')

  const blocks = await blocksOfPage()
  t.ok(blocks * 4 < before.blocks, `${before.blocks} blocks before, ${blocks} after`)
  t.same(await properties(), before.properties)
  t.same(await recordOk(service.url, requestsOf(callers)), golden, 'bodies and ETags')
  const verified = await operatorHere(['verify'], { DATABASE_URL: url })
  t.equal(verified.code, 0, verified.stdout)
  const version = `select data_version::int from connection where id = ${connection.id}`
  const old = Number(await firstValue(url, version))
  await firstValue(url, `delete from portfolio_transaction where connection_id = ${connection.id}`)
  t.equal(await firstValue(url, version), old + 1, 'triggers still run')
})
