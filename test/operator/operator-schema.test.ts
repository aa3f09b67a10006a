import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import t from 'tap'
import { createDatabase } from '../support/database.ts'
import { operatorHere } from '../support/operator-process.ts'
import { databaseUrl, onServer } from '../support/template.ts'

/** Statements that change the schema, and what `verify` says. */
const DRIFTS: Record<string, RegExp> = {
  'drop trigger remember_version on connection':
    /missing, or changed: CREATE TRIGGER remember_version/,
  'alter table account_transaction disable trigger account_transaction_number_again':
    /of no migration: alter table account_transaction disable trigger/,
  'drop policy of_the_connection on portfolio_transaction':
    /missing, or changed: create policy of_the_connection on portfolio_transaction /,
  'create policy everything on app_token for select to investment_service using (true)':
    /of no migration: create policy everything on app_token/,
  'alter table connection disable row level security':
    /missing, or changed: alter table connection enable row level security/,
  'drop index connection_lookup': /missing, or changed: CREATE UNIQUE INDEX connection_lookup/,
  'alter table connection drop constraint refreshed_in_years':
    /missing, or changed: .* constraint refreshed_in_years/,
  'grant select on app to investment_service': /of no migration: grant select on table app to/,
  'revoke select on assets_transfer_order from investment_service':
    /missing, or changed: grant select on table assets_transfer_order to investment_service/,
  [`create or replace function remember_version() returns trigger language plpgsql
    as $$ begin return new; end $$`]: /missing, or changed: CREATE OR REPLACE FUNCTION/,
  [`do $$ begin execute format('revoke connect on database %I from public, investment_service',
    current_database()); end $$`]:
    /missing, or changed: grant connect on database test_\w+ to investment_service/,
  'revoke usage on schema public from public, investment_service':
    /missing, or changed: grant usage on schema public to investment_service/,
  'grant create on schema public to public':
    /missing, or changed: revoke create on schema public from public/,
  [`do $$ begin execute format('alter role investment_service in database %I reset row_security',
    current_database()); end $$`]:
    /missing, or changed: alter role investment_service in database test_\w+ set row_security = 'on'/,
  [`do $$ begin execute format('alter role investment_service in database %I set search_path = nothing',
    current_database()); end $$`]:
    /missing, or changed: alter role investment_service in database test_\w+ set search_path = 'public'/,
}

t.test('verify: each change of the schema is found', async (t) => {
  for (const [statement, expected] of Object.entries(DRIFTS)) {
    const { url } = await createDatabase(t)
    await onServer(url, statement)
    const { code, stdout } = await operatorHere(['verify'], { DATABASE_URL: url })
    t.equal(code, 1, statement)
    t.match(stdout, expected)
    const { schema } = (await operatorHere(['verify', '--json'], { DATABASE_URL: url })).json()
    t.ok(schema.missing.length + schema.unexpected.length > 0)
  }
})

t.test(
  'verify in another time zone, beside an index and a role of the operator: no difference',
  async (t) => {
    const { url } = await createDatabase(t)
    await onServer(url, 'create index mine on account_transaction (account_id)')
    const zoned = new URL(url)
    zoned.searchParams.set('options', '-c timezone=Asia/Kathmandu')
    t.match(await operatorHere(['verify'], { DATABASE_URL: zoned.href }), { code: 0 })
  },
)

t.test('verify with an owner named investment_owner: no difference', async (t) => {
  const owner = `investment_owner_${randomBytes(6).toString('hex')}`
  const first = await createDatabase(t)
  t.teardown(() => onServer(databaseUrl(first.url, 'postgres'), `drop role ${owner}`))
  const { url } = await createDatabase(t)
  await onServer(
    url,
    `create role ${owner};
    do $$ declare object text; begin
      for object in
        select 'table ' || oid::regclass from pg_class
        where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'v')
        union all
        select 'function ' || oid::regprocedure from pg_proc where pronamespace = 'public'::regnamespace
      loop
        execute format('alter %s owner to ${owner}', object);
      end loop;
    end $$`,
  )
  const { code, stdout } = await operatorHere(['verify'], { DATABASE_URL: url })
  t.equal(code, 0, stdout)
})

t.test('verify --hardened: rights of PUBLIC are found until the script has run', async (t) => {
  const { url } = await createDatabase(t)
  const verify = (...flags: string[]) => operatorHere(['verify', ...flags], { DATABASE_URL: url })
  t.match(await verify(), { code: 0 }, 'not without the flag: the script is optional')
  const { code, stdout } = await verify('--hardened')
  t.equal(code, 1)
  t.match(stdout, /^PUBLIC has rights that docs\/reference\/public-rights\.sql revokes:$/m)
  t.match(stdout, /^ {2}missing: revoke temporary on database test_\w+ from public$/m)
  t.match(
    stdout,
    /^ {2}missing: revoke execute on function pg_advisory_lock\(bigint\) from public$/m,
  )
  await onServer(url, await readFile('docs/reference/public-rights.sql', 'utf8'))
  const hardened = await verify('--hardened', '--json')
  t.match(hardened, { code: 0 })
  t.same(hardened.json().publicRights, [])
})
