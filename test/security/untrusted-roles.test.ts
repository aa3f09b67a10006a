import { sql } from 'kysely'
import type pg from 'pg'
import t, { type Test } from 'tap'
import { createDatabase, openClient } from '../support/database.ts'
import { loginOf, openAsOwner } from '../support/logins.ts'
import { operatorHere } from '../support/operator-process.ts'
import { addCaller, keySql, lists } from '../support/rows.ts'
import { startService } from '../support/service.ts'
import { withLengths } from '../support/with-lengths.ts'

const UPDATES = {
  portfolio: 'update portfolio_transaction set amount = amount + 1',
  account: 'update account_transaction set amount = amount + 1',
}
type List = keyof typeof UPDATES

/** Statements of a writer that hide an update from the triggers of another design. */
const DISGUISES: Record<string, (update: string) => string[]> = {
  'a setting of the session': (update) => [
    `set service.numbering = 'on'`,
    update,
    'reset service.numbering',
  ],
  'a trigger of a temporary table': (update) => [
    'create temporary table mine ()',
    `create or replace function pg_temp.write() returns trigger language plpgsql
       as $$ begin ${update}; return null; end $$`,
    'create trigger write after insert on mine for each statement execute function pg_temp.write()',
    'insert into mine default values',
    'drop table mine',
  ],
  'settings of the planner': (update) => [
    `set plan_cache_mode = 'force_custom_plan'; set enable_indexscan = off; set enable_tidscan = off`,
    update,
    'reset all',
  ],
}

for (const [name, disguise] of Object.entries(DISGUISES)) {
  t.test(`investment_writer with ${name}: each change has a version and a number`, async (t) => {
    const { service, writer, caller } = await filled(t)
    for (const list of ['portfolio', 'account'] as List[]) {
      const { token } = caller
      const get = (query = '', headers = {}) =>
        service.get(`${caller.connection[list]}${query}`, { token, headers })
      const before = await get()
      const { nextCursor: cursor } = (await get('?since=start')).json()
      for (const statement of disguise(UPDATES[list])) await writer.query(statement)
      const etag = String(before.headers.get('etag'))
      t.equal((await get('', { 'if-none-match': etag })).status, 200, 'not 304')
      t.equal((await get(`?since=${cursor}`)).json().items.length, 3, 'the changes since before')
      t.equal((await get('?since=start')).json().items.length, 3, 'a new copy')
    }
    const verified = await operatorHere(['verify'], { DATABASE_URL: service.databaseUrl })
    t.match(verified, { code: 0 }, verified.stdout)
  })
}

t.test('23514: a time of which a response cannot write the year', async (t) => {
  const { service, writer, caller } = await filled(t)
  const owner = await openClient(t, service.databaseUrl)
  const times = ['infinity', '-infinity', '10000-01-01 00:00:00+00', '0001-12-31 23:59:59+00 BC']
  for (const time of times) {
    const refused = (client: pg.Client, statement: string) =>
      t.rejects(client.query(statement, [time]), { code: '23514' }, `${statement} ${time}`)
    await refused(writer, 'update connection set refreshed_at = $1')
    await refused(writer, 'update assets_transfer_order set completed_at = $1')
    await refused(owner, 'update connection set changed_at = $1')
  }
  for (const time of ['0001-01-01 00:00:00+00', '9999-12-31 23:59:59.999999+00']) {
    await writer.query('update connection set refreshed_at = $1', [time])
    await writer.query('update assets_transfer_order set completed_at = $1', [time])
    const { portfolio, account, orders } = caller.connection
    for (const path of [portfolio, account, orders]) {
      const { status, headers } = await service.get(path, { token: caller.token })
      t.match(
        [status, headers.get('data-refreshed')],
        withLengths([200, /^(0001|9999)-\d\d-\d\dT/]),
        path,
      )
    }
  }
})

/** Functions and operators that PostgreSQL would prefer to its own for the arguments that the triggers have. */
const IN_FRONT = [
  'unnest(tid[])',
  'array_agg(tid)',
  'sum(integer)',
  'count(bigint)',
  'count(public.token_hash)',
  'min(date)',
  'left(uuid, integer)',
  'translate(text, unknown, text)',
  'clock_timestamp()',
  'random()',
  'gen_random_uuid()',
  'pg_trigger_depth()',
  'pg_current_xact_id()',
  'set_config(text, text, boolean)',
].filter((name) => !name.includes('unknown'))
const OPERATORS = [
  ['<<', 'bigint, integer'],
  ['=', 'bigint, bigint'],
  ['=', 'public.token_hash, bytea'],
  ['-', 'date, integer'],
  ['*', 'interval, integer'],
  ['*', 'interval, bigint'],
]

t.test(
  'PUBLIC may create in schema public: the triggers run nothing of another role',
  async (t) => {
    const { service, writer } = await filled(t)
    const owner = await openClient(t, service.databaseUrl)
    await owner.query('grant create on schema public to public')
    const attacker = await openClient(
      t,
      await loginOf(t, service.db, service.databaseUrl, 'service'),
    )
    await attacker.query('set session characteristics as transaction read write')
    const body = `language plpgsql as $$ begin raise 'runs as %', current_user; end $$`
    for (const signature of IN_FRONT)
      await attacker.query(`create function public.${signature} returns bigint ${body}`)
    for (const [index, [operator, types]] of OPERATORS.entries()) {
      const [left, right] = String(types).split(', ')
      await attacker.query(`create function public.o${index} (${types}) returns bigint ${body}`)
      await attacker.query(`create operator public.${operator}
      (function = public.o${index}, leftarg = ${left}, rightarg = ${right})`)
    }
    await writer.query('set search_path = pg_catalog')
    for (const { table, idColumn } of Object.values(lists)) {
      await writer.query(`update public.${table} set amount = amount + 1`)
      await writer.query(`update public.${table} set ${idColumn} = gen_random_uuid()`)
      await writer.query(`delete from public.${table}`)
    }
    await writer.query('update public.assets_transfer_order set amount = 2')
    await writer.query('delete from public.assets_transfer_order')
    await attacker.query('set search_path = pg_catalog')
    await attacker.query('select * from public.sample_refreshes()')
  },
)

t.test('setseed(): sample_refreshes() takes another sample each time', async (t) => {
  const { url } = await createDatabase(t)
  const db = openAsOwner(t, url)
  const { appId } = await addCaller(db)
  const hash = 'sha256(n::text::bytea)'
  await sql`
    insert into connection (id, app_id, token_hash, refreshed_at)
    select ${sql.raw(keySql(hash))}, ${appId}, ${sql.raw(hash)}, case when n % 2 = 0 then now() end
    from generate_series(1, 12000) n`.execute(db)
  const service = await openClient(t, await loginOf(t, db, url, 'service'))
  const samples = new Set<string>()
  for (let run = 0; run < 5; run += 1) {
    await service.query('select setseed(0.25)')
    const { rows } = await service.query('select * from sample_refreshes() order by 1')
    samples.add(JSON.stringify(rows))
  }
  t.ok(samples.size > 1, [...samples].join())
})

t.test('connection create: an advisory lock of another role does not stop it', async (t) => {
  const { url } = await createDatabase(t)
  const db = openAsOwner(t, url)
  const service = await openClient(t, await loginOf(t, db, url, 'service'))
  const env = { DATABASE_URL: url }
  t.match(await operatorHere(['app', 'create', 'mine'], env), { code: 0 })
  const { rows } = await sql<{ id: string }>`select id from app`.execute(db)
  await service.query('select pg_advisory_lock(hashtextextended($1, 0))', [rows[0]?.id])
  t.match(await operatorHere(['connection', 'create', '--app', 'mine'], env), { code: 0 })
})

t.test('One transaction: one earlier version, whatever the number of its statements', async (t) => {
  const { url } = await createDatabase(t)
  const db = openAsOwner(t, url)
  await addCaller(db)
  const client = await openClient(t, url)
  const versions = async () => {
    const { rows } = await client.query(
      'select v.data_version, v.changed_at from connection_version v order by 1',
    )
    return rows.map(({ data_version }) => Number(data_version))
  }
  await client.query('begin')
  await client.query(ROWS)
  await client.query(UPDATES.portfolio)
  await client.query('savepoint undone')
  await client.query(UPDATES.account)
  await client.query('rollback to undone')
  await client.query('delete from assets_transfer_order')
  await client.query('commit')
  t.same(await versions(), [0])
  const [committed] = (await client.query('select data_version from connection')).rows
  await client.query(UPDATES.portfolio)
  t.same(await versions(), [0, Number(committed.data_version)])
})

/** Three rows of each list. */
const ROWS = `
  with c as (select id from connection), n as (select generate_series(1, 3) as n),
  portfolio as (
    insert into portfolio_transaction
      (connection_id, transaction_id, portfolio_id, type, amount, operation_date_day)
    select id, gen_random_uuid(), gen_random_uuid(), 'BUY', n, '2026-01-01' from c, n),
  account as (
    insert into account_transaction
      (connection_id, movement_id, account_id, type, amount, operation_date_day)
    select id, gen_random_uuid(), gen_random_uuid(), 'FEES', n, '2026-01-01' from c, n)
  insert into assets_transfer_order (connection_id, id, completed_at)
  select id, gen_random_uuid(), now() from c, n`

/** A service, a connection with three rows in each list, and a login of investment_writer. */
async function filled(t: Test) {
  const service = await startService(t)
  const caller = await addCaller(service.db)
  const writer = await openClient(t, await loginOf(t, service.db, service.databaseUrl, 'writer'))
  await writer.query(ROWS)
  return { service, writer, caller }
}
