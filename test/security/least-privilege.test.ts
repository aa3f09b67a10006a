import { readFile } from 'node:fs/promises'
import t, { type Test } from 'tap'
import { lists } from '../../src/schemas/lists.ts'
import { createDatabase, openClient } from '../support/database.ts'
import { loginOfService, openAsOwner } from '../support/logins.ts'
import { operatorHere } from '../support/operator-process.ts'

/** Readable columns of the tables that the service's role can read in part. */
const READABLE: Record<string, string[]> = {
  app: ['client_id', 'id'],
  app_token: ['app_id', 'expires_at', 'revoked_at', 'token_hash'],
  connection: [
    'account_transactions',
    'app_id',
    'change_horizon',
    'changed_at',
    'data_version',
    'id',
    'portfolio_transactions',
    'refreshed_at',
    'token_hash',
  ],
  kysely_migration: ['name'],
}
/** Tables of which the role can read every column: those of the lists, and what belongs to them. */
const WHOLE = [
  ...lists.map(({ table }) => table),
  'account_transaction_day',
  'account_transaction_month',
  'account_transaction_removal',
  'connection_version',
  'portfolio_transaction_day',
  'portfolio_transaction_month',
  'portfolio_transaction_removal',
]

t.test('role of the service: it reads only the columns that the service needs', async (t) => {
  const { service } = await connections(t)
  const { rows } = await service.query<{ table: string; readable: string[]; columns: string[] }>(`
    select c.relname as table, array_agg(attname::text order by attname) as columns,
      array_agg(attname::text order by attname)
        filter (where has_column_privilege(c.oid, attnum, 'select')) as readable
    from pg_class c join pg_attribute a on attrelid = c.oid and attnum > 0 and not attisdropped
    where relnamespace = 'public'::regnamespace and relkind in ('r', 'v', 'm', 'p', 'f')
      -- The views of an extension, such as citus_tables.
      and not exists (select from pg_depend where objid = c.oid and deptype = 'e')
    group by 1 having bool_or(has_column_privilege(c.oid, attnum, 'select'))
    order by 1`)
  const whole = rows.filter(({ readable, columns }) => readable.length === columns.length)
  t.same(
    whole.map(({ table }) => table),
    WHOLE.toSorted(),
  )
  const partly = rows.filter((row) => !whole.includes(row))
  t.same(Object.fromEntries(partly.map(({ table, readable }) => [table, readable])), READABLE)
})

t.test('role of the service: it cannot write, execute or create', async (t) => {
  const { service } = await connections(t)
  const expectNone = async (what: string, from: string) =>
    t.same((await service.query(`select ${from}`)).rows, [], what)
  const ours = `from pg_class where relnamespace = 'public'::regnamespace`
  await expectNone(
    'tables',
    `relname ${ours} and relkind in ('r', 'v', 'm', 'p', 'f') and (
      has_any_column_privilege(oid, 'insert, update, references')
      or has_table_privilege(oid, 'insert, update, delete, truncate, references, trigger'
        -- PostgreSQL 17 added this privilege.
        || case when current_setting('server_version_num')::int >= 170000 then ', maintain' else '' end))`,
  )
  await expectNone(
    'sequences',
    `relname ${ours}
      and case relkind when 'S' then has_sequence_privilege(oid, 'usage, select, update') end`,
  )
  await expectNone(
    'functions',
    `proname from pg_proc where pronamespace = 'public'::regnamespace
      and proname <> 'sample_refreshes' and has_function_privilege(oid, 'execute')`,
  )
  await expectNone(
    'schemas',
    `nspname from pg_namespace where has_schema_privilege(oid, 'create')
    and nspname !~ '^pg_(toast_)?temp_'`,
  )
  await expectNone(
    'roles',
    `rolname from pg_roles where rolname = current_user
    and (rolsuper or rolcreaterole or rolcreatedb or rolreplication or rolbypassrls)`,
  )
})

t.test('every readable table: row-level security is on', async (t) => {
  const { owner } = await connections(t)
  const { rows } = await owner.query(`
    select relname from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'
      and not relrowsecurity and has_any_column_privilege('investment_service', oid, 'select')`)
  t.same(rows, [{ relname: 'kysely_migration' }])
})

t.test('42501: rights that docs/reference/public-rights.sql revokes from PUBLIC', async (t) => {
  const statement = await readFile('docs/reference/public-rights.sql', 'utf8')
  await allDenied(
    t,
    [
      'create temporary table mine ()',
      'select 1 into temporary mine',
      'select lo_creat(-1)',
      'select lo_create(0)',
      `select lo_from_bytea(0, 'mine')`,
      `select lo_import('/etc/hostname')`,
      `select pg_logical_emit_message(false, 'mine', 'text')`,
      'select pg_advisory_lock(1)',
      'select pg_try_advisory_xact_lock_shared(1)',
    ],
    statement,
  )
})

t.test('42501: writes in a connection that was made writable', async (t) => {
  await allDenied(t, [
    'delete from portfolio_transaction',
    'update connection set data_version = 0',
    'insert into app_token (app_id) values (gen_random_uuid())',
    'truncate account_transaction_month',
    'create table mine ()',
    'create policy mine on connection using (true)',
    'alter table connection disable row level security',
    'set role postgres',
  ])
})

t.test('42501: triggers with the functions of the row counts', async (t) => {
  const { owner, service } = await connections(t)
  await owner.query(`grant temporary on database ${owner.database} to investment_service`)
  const { rows } = await owner.query<{ name: string; settings: string[] }>(`
    select proname as name, proconfig as settings from pg_proc
    where pronamespace = 'public'::regnamespace and prosecdef`)
  t.ok(rows.length > 0)
  for (const { name, settings } of rows) {
    t.ok(settings.includes('search_path=pg_catalog, pg_temp'), `${name}: search_path`)
  }
  await service.query('set session characteristics as transaction read write')
  await service.query('create temp table bait (connection_id bigint, effective_day date)')
  const hook = `create trigger hook after insert on bait referencing new table as new_rows
    for each statement execute function portfolio_transaction_row_counts_after_insert()`
  await t.rejects(service.query(hook), { code: '42501' })
})

/**
 * Runs statements as the service in a connection that was made writable. PostgreSQL denies each one.
 * @param before statement of a superuser
 */
async function allDenied(t: Test, statements: string[], before = ''): Promise<void> {
  const { service, owner } = await connections(t)
  await owner.query(before)
  await service.query('set session characteristics as transaction read write')
  for (const statement of statements) {
    await t.rejects(service.query(statement), { code: '42501' }, statement)
  }
}

async function connections(t: Test) {
  const { url } = await createDatabase(t)
  t.match(await operatorHere(['migrate'], { DATABASE_URL: url }), { code: 0 })
  const db = openAsOwner(t, url)
  const service = await openClient(t, await loginOfService(t, db, url))
  return { service, owner: await openClient(t, url) }
}
