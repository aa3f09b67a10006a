import { randomBytes } from 'node:crypto'
import * as fs from 'node:fs/promises'
import * as path from 'node:path'
import { FileMigrationProvider, Migrator } from 'kysely/migration'
import pg from 'pg'
import t, { type Test } from 'tap'
import { readConfig } from '../../src/config.ts'
import { catalogOf } from '../../src/operator/catalog.ts'
import { scramVerifier } from '../../src/operator/migrate.ts'
import { Database } from '../../src/postgres/database.ts'
import { readServer } from '../../src/postgres/readiness.ts'
import { databaseOptions } from '../../src/service.ts'
import { createDatabase, openClient } from '../support/database.ts'
import { codeBlocks } from '../support/documented-commands.ts'
import { portfolioLine } from '../support/importing.ts'
import { loginOfService, openAsOwner } from '../support/logins.ts'
import { catalogOfNewDatabase } from '../support/new-schema.ts'
import { operatorHere } from '../support/operator-process.ts'
import { runs } from '../support/random.ts'
import {
  addAccountTransactions,
  addCaller,
  addPortfolioTransactions,
  addTransferOrders,
} from '../support/rows.ts'
import { startService } from '../support/service.ts'
import { databaseUrl, dropDatabase, onServer } from '../support/template.ts'
import { shortenPauses } from '../support/time.ts'
import { until } from '../support/until.ts'
import { withLengths } from '../support/with-lengths.ts'

const migrationFolder = path.resolve(import.meta.dirname, '../../migrations')
const provider = new FileMigrationProvider({ fs, path, migrationFolder })
const known = Object.keys(await provider.getMigrations()).sort()
/** Index of the first migration that a reader of `connection` blocks, and after which others follow. */
const BLOCKED = known.indexOf('0005-versions-and-writers')

t.test('migrate: runs each migration once, in order', async (t) => {
  const { url } = await emptyDatabase(t)
  const migrate = () => operatorHere(['migrate', '--json'], { DATABASE_URL: url })
  t.same((await migrate()).json(), { applied: known })
  t.same((await migrate()).json(), { applied: [] })
  t.match(await operatorHere(['migrate'], { DATABASE_URL: url }), {
    code: 0,
    stdout: 'The schema is up to date.\n',
    stderr: '',
  })
})

t.test('Concurrent runs: one applies each migration, the others wait', async (t) => {
  // The creation of the first table fails in a different way at each moment of a race.
  for (let race = 1; race <= runs(12); race += 1) {
    const { url } = await emptyDatabase(t)
    const ended = await Promise.all(
      [1, 2, 3].map(() => operatorHere(['migrate', '--json'], { DATABASE_URL: url })),
    )
    for (const run of ended) t.equal(run.code, 0, run.stderr)
    t.same(ended.flatMap((run) => run.json().applied).sort(), known)
  }
})

t.test('Role of the service: read-only sessions, timeouts and planner settings', async (t) => {
  const { url } = await createDatabase(t)
  const migrated = async (): Promise<string[]> => {
    t.match(await operatorHere(['migrate'], { DATABASE_URL: url }), { code: 0 })
    const [row] = await query(
      url,
      `select setconfig from pg_db_role_setting s
       join pg_database d on d.oid = s.setdatabase and d.datname = current_database()
       where s.setrole = 'investment_service'::regrole`,
    )
    return row?.setconfig.sort()
  }
  // PostgreSQL 17 and later.
  const newer = await query(
    url,
    `select name || '=0' as setting from pg_settings where name = 'transaction_timeout'`,
  )
  const settings = await migrated()
  t.same(settings, [
    'default_transaction_isolation=read committed',
    'default_transaction_read_only=on',
    'enable_bitmapscan=off',
    'enable_seqscan=off',
    'enable_sort=off',
    'idle_in_transaction_session_timeout=10s',
    'idle_session_timeout=0',
    'jit=off',
    'lock_timeout=1s',
    'plan_cache_mode=force_generic_plan',
    'row_security=on',
    'search_path=public',
    'statement_timeout=5s',
    ...newer.map(({ setting }) => setting),
  ])
  t.same(await migrated(), settings)
  // The role can change its settings itself (SECURITY.md).
  const ownSettings = `alter role investment_service in database ${nameOf(url)}`
  await onServer(url, `${ownSettings} set work_mem = '1GB'`)
  await onServer(url, `${ownSettings} set statement_timeout = 0`)
  await onServer(url, 'alter role investment_service reset all')
  t.same(
    (await migrated()).filter((setting) => !settings.includes(setting)),
    ['work_mem=1GB'],
  )
  await onServer(url, `${ownSettings} reset all`)
  t.same(await migrated(), settings)
})

t.test('SERVICE_DATABASE_PASSWORD: the role of the service can log in', async (t) => {
  const { url } = await createDatabase(t)
  t.teardown(() => onServer(url, 'alter role investment_service nologin password null'))
  const SERVICE_DATABASE_PASSWORD = `it's "${randomBytes(12).toString('base64')}"\\$`
  const env = { DATABASE_URL: url, SERVICE_DATABASE_PASSWORD }
  t.match(await operatorHere(['migrate'], env), { code: 0, stderr: '' })
  const login = new URL(url)
  login.username = 'investment_service'
  login.password = encodeURIComponent(SERVICE_DATABASE_PASSWORD)
  t.same(await query(login.href, 'show transaction_read_only'), [{ transaction_read_only: 'on' }])
  const [stored] = await query(
    url,
    `select rolpassword from pg_authid where rolname = 'investment_service'`,
  )
  const salt = Buffer.from(String(stored?.rolpassword).split(/[:$]/)[2] ?? '', 'base64')
  t.equal(stored?.rolpassword, scramVerifier(SERVICE_DATABASE_PASSWORD, salt))
  const rejected = await operatorHere(['migrate'], { ...env, SERVICE_DATABASE_PASSWORD: 'größe' })
  t.match(rejected, { code: 1, stderr: /^SERVICE_DATABASE_PASSWORD must be printable ASCII/ })
  t.equal((await operatorHere(['migrate'], { ...env, SERVICE_DATABASE_PASSWORD: '' })).code, 0)
  t.same(await query(login.href, 'select 1 as one'), [{ one: 1 }], 'empty: no change')
})

t.test('Password verifier: the example of RFC 7677', (t) => {
  // The keys follow from the password, salt and messages of the example.
  const salt = Buffer.from('W22ZaJ0SNY7soEsUEjb6gQ==', 'base64')
  const [, keys = ''] = scramVerifier('pencil', salt).split(`${salt.toString('base64')}$`)
  t.equal(
    keys,
    'WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=',
  )
  t.end()
})

t.test('Locked table: the migration stops waiting and tries again', async (t) => {
  const { url } = await emptyDatabase(t)
  await migrateTo(t, url, known[BLOCKED - 1])
  const holder = new pg.Client({ connectionString: url, application_name: 'pg_dump' })
  await holder.connect()
  await holder.query('begin; lock table connection in access share mode')
  shortenPauses(t, 4)
  let messages = ''
  const onStderr = (text: string) => {
    messages = text
  }
  const migrating = operatorHere(['migrate', '--json'], { DATABASE_URL: url }, { onStderr })
  const again = /Another session holds a lock that a migration needs; trying again \(\d+\)\.\n/
  await until('an attempt has ended', () => again.test(messages))
  // Other sessions read between two attempts.
  await query(url, 'select count(*) from connection')
  await holder.end()
  t.same((await migrating).json(), { applied: known.slice(BLOCKED) })
})

t.test('Superuser that does not own the tables: migrate changes nothing', async (t) => {
  const { url } = await emptyDatabase(t)
  await migrateTo(t, url, known[0])
  const other = `owner_${process.pid}`
  await onServer(url, `create role ${other}; alter table app owner to ${other}`)
  const refused = await operatorHere(['migrate'], { DATABASE_URL: url })
  await onServer(url, `drop owned by ${other} cascade; drop role ${other}`)
  t.match(refused, { code: 1, stderr: `The tables belong to ${other}: run ` })
})

t.test('Table locked at each of 30 attempts: migrate gives up, and can run again', async (t) => {
  const { url } = await emptyDatabase(t)
  await migrateTo(t, url, known[BLOCKED - 1])
  // Fails as a statement that waits for a lock fails after lock_timeout.
  await onServer(
    url,
    `create function fail() returns event_trigger language plpgsql as $$ begin
      raise 'canceling statement due to lock timeout' using errcode = 'lock_not_available'; end $$;
    create event trigger locked on ddl_command_start execute function fail()`,
  )
  shortenPauses(t, 100)
  const migrate = () => operatorHere(['migrate', '--json'], { DATABASE_URL: url })
  const locked = await migrate()
  const names = await query(url, 'select name from kysely_migration order by name')
  await onServer(url, 'drop event trigger locked')
  t.equal(locked.code, 1)
  const lines = locked.stderr.trim().split('\n')
  const attempts = lines.filter((line) => line.includes('trying again'))
  t.equal(attempts.length, 29, 'further attempts')
  t.match(attempts.at(-1), 'trying again (29)')
  t.ok(lines.includes('Another session holds a lock that this command needs: try again later.'))
  const applied = names.map(({ name }) => name)
  t.same(applied, known.slice(0, BLOCKED), 'completed migrations stay')
  t.same((await migrate()).json(), { applied: known.slice(BLOCKED) })
})

t.test('Outdated schema: the service names the migrations that are missing', async (t) => {
  const { url } = await emptyDatabase(t)
  await migrateTo(t, url, '0004-service-role')
  const login = await loginOfService(t, openAsOwner(t, url), url)
  const db = new Database(databaseOptions(readConfig({ DATABASE_URL: login }), login))
  t.teardown(() => db.close())
  t.same((await readServer(db)).missing, known.slice(4))
})

t.test(
  'PUBLIC may create in the schema public: migrate revokes it, or changes nothing',
  async (t) => {
    const { url } = await emptyDatabase(t)
    await onServer(url, 'grant create on schema public to public')
    const isOpen = async () => {
      const [row] = await query(
        url,
        `select has_schema_privilege('public', 'public', 'create') as is`,
      )
      return row?.is
    }
    const stranger = `stranger_${randomBytes(4).toString('hex')}`
    await onServer(url, `create role ${stranger}`)
    t.teardown(async () => {
      await onServer(url, `drop owned by ${stranger}`)
      await onServer(url, `drop role ${stranger}`)
    })
    const planted = `create function public.unnest(tid[]) returns tid language sql as 'select null::tid'`
    await onServer(url, `set role ${stranger}; ${planted}`)
    for (const time of ['first', 'second']) {
      const found = await operatorHere(['migrate'], { DATABASE_URL: url })
      t.match(found, { code: 1, stderr: `try again: unnest(tid[]) of ${stranger}.` }, time)
      t.equal(await isOpen(), true)
    }
    await onServer(url, 'drop function public.unnest(tid[])')

    const owner = await newOwner(t, url)
    await onServer(url, 'alter schema public owner to postgres')
    const refused = await operatorHere(['migrate'], { DATABASE_URL: owner })
    t.match(refused, {
      code: 1,
      stderr: /must run these .*:\nrevoke create on schema public from public;\n$/,
    })
    t.same(await query(url, `select to_regclass('kysely_migration') as is`), [{ is: null }])
    const revoked = await operatorHere(['migrate'], { DATABASE_URL: url })
    t.match(revoked, {
      code: 0,
      stderr: /^PUBLIC may no longer create objects in the schema public/,
    })
    t.equal(await isOpen(), false)
  },
)

t.test('Database of 1.0.0 with rows: an upgrade keeps each row and token', async (t) => {
  const { url } = await emptyDatabase(t)
  await migrateTo(t, url, '0004-service-role')
  const db = openAsOwner(t, url)
  const { connection, token } = await addCaller(db)
  await addPortfolioTransactions(db, connection, { amount: '1.50' }, { description: 'é\\,"' })
  await addAccountTransactions(db, connection, { amount: '-0.10' })
  await addTransferOrders(db, connection, {}, { completed_at: null })
  await query(url, 'update portfolio_transaction set price = 7; delete from account_transaction')
  // Without nulls: a later migration may add a column.
  const rows = async () => {
    const tables = ['portfolio_transaction', 'account_transaction', 'assets_transfer_order']
    const removed = ['portfolio_transaction_removal', 'account_transaction_removal', 'app_token']
    return await Promise.all(
      [...tables, ...removed].map((table) =>
        query(url, `select jsonb_strip_nulls(to_jsonb(t))::text as row from ${table} t order by 1`),
      ),
    )
  }
  const version = () => query(url, 'select id, data_version, changed_at::text from connection')
  const earlier = [await rows(), await version()]
  t.match(await operatorHere(['migrate'], { DATABASE_URL: url }), { code: 0 })
  t.same([await rows(), await version()], earlier)
  t.match(await operatorHere(['verify'], { DATABASE_URL: url }), { code: 0 }, 'the schema, too')
  t.same(await catalogOf(db), await catalogOfNewDatabase(t))
  const service = await startService(t, { databaseUrl: url })
  const { items } = (await service.get(connection.portfolio, { token })).json()
  t.equal(items.length, 2)
})

t.test('Order completed after the year 9999: migrate stops, and continues later', async (t) => {
  const { url } = await emptyDatabase(t)
  await migrateTo(t, url, '0004-service-role')
  const db = openAsOwner(t, url)
  const { connection } = await addCaller(db)
  await addTransferOrders(db, connection, {}, {})
  await query(
    url,
    "update assets_transfer_order set completed_at = '10000-01-01 00:00:00+00' where ctid = '(0,1)'",
  )
  const migrate = () => operatorHere(['migrate', '--json'], { DATABASE_URL: url })
  t.match(await migrate(), { code: 1, stderr: /completed_in_years.*assets_transfer_order/ })
  // The statement of CHANGELOG.md.
  await query(
    url,
    `update assets_transfer_order set completed_at = now() where completed_at < '0001-01-01 00:00:00+00'
       or completed_at >= '10000-01-01 00:00:00+00'`,
  )
  // The one before stays.
  t.same((await migrate()).json(), { applied: known.slice(BLOCKED + 1) })
})

t.test('Role without the privilege: statements for an administrator', async (t) => {
  const { url } = await emptyDatabase(t)
  const role = `operator_${randomBytes(4).toString('hex')}`
  const database = new URL(url).pathname.slice(1)
  await onServer(url, `create role ${role} login password 'secret'`)
  t.teardown(async () => {
    await onServer(url, `drop owned by ${role}`)
    await onServer(url, `drop role ${role}`)
  })
  await onServer(url, `grant all on database ${database} to ${role}`)
  await onServer(url, `grant all on schema public to ${role}`)
  const own = Object.assign(new URL(url), { username: role, password: 'secret' }).href
  const { code, stderr } = await operatorHere(['migrate'], { DATABASE_URL: own })
  t.equal(code, 1)
  t.match(stderr, /^This role may not prepare the roles and rights .* Nothing was changed\./)
  t.same(await query(url, `select to_regclass('kysely_migration') as is`), [{ is: null }])
  const statements = stderr.slice(stderr.indexOf('\n') + 1)
  t.match(statements, `alter role investment_service in database ${database} set jit = 'off';`)
  await onServer(url, statements)
  const again = await operatorHere(['migrate'], { DATABASE_URL: own })
  t.match(again, { code: 0, stdout: /^Applied / }, 'no statements are left')
  const SERVICE_DATABASE_PASSWORD = 'not to be shown'
  const login = await operatorHere(['migrate'], { DATABASE_URL: own, SERVICE_DATABASE_PASSWORD })
  t.match(login, { code: 1, stderr: /may not do this.*permission denied/ })
  t.notMatch(login.stderr, SERVICE_DATABASE_PASSWORD)
})

t.test('Role with a schema of its own: the tables are in the schema public', async (t) => {
  const { url } = await emptyDatabase(t)
  await query(url, 'create schema authorization current_user')
  t.match(await operatorHere(['migrate'], { DATABASE_URL: url }), { code: 0, stderr: '' })
  t.match(await operatorHere(['verify'], { DATABASE_URL: url }), { code: 0 })
})

t.test('Database with another encoding: an error before anything is applied', async (t) => {
  const { url } = await emptyDatabase(t)
  const database = `latin1_${randomBytes(4).toString('hex')}`
  await onServer(url, `create database ${database} encoding 'LATIN1' locale 'C' template template0`)
  t.teardown(() => dropDatabase(url, database))
  const DATABASE_URL = Object.assign(new URL(url), { pathname: `/${database}` }).href
  const { code, stderr } = await operatorHere(['migrate'], { DATABASE_URL })
  t.equal(code, 1)
  t.match(stderr, /^The database has the encoding LATIN1, which cannot store all texts/)
  t.same(await query(DATABASE_URL, `select to_regclass('kysely_migration') as is`), [{ is: null }])
})

t.test('Database in Turkish, where i is not the small I: verify finds no difference', async (t) => {
  const { url } = await emptyDatabase(t)
  const database = `turkish_${randomBytes(4).toString('hex')}`
  await onServer(
    url,
    `create database ${database} encoding 'UTF8' locale 'C' locale_provider icu icu_locale 'tr-TR'
      template template0`,
  )
  t.teardown(() => dropDatabase(url, database))
  const DATABASE_URL = Object.assign(new URL(url), { pathname: `/${database}` }).href
  t.match(await operatorHere(['migrate'], { DATABASE_URL }), { code: 0 })
  t.match(await operatorHere(['verify'], { DATABASE_URL }), { code: 0 })
})

t.test('Database without rights of PUBLIC: the service gets those that it needs', async (t) => {
  const { url } = await emptyDatabase(t)
  await closeToPublic(url)
  t.match(await operatorHere(['migrate'], { DATABASE_URL: url }), { code: 0, stderr: '' })
  const service = await startService(t, { databaseUrl: url })
  t.equal((await service.get('/health/ready')).status, 200)
  const { connection, token } = await addCaller(service.db)
  t.equal((await service.get(connection.portfolio, { token })).status, 200)
})

t.test('Another run in progress: migrate waits for its end', async (t) => {
  const { url } = await createDatabase(t)
  const other = await openClient(t, url)
  await other.query(`set application_name = 'investment-data-operator'; begin;
    lock table kysely_migration in share row exclusive mode`)
  let [ended, messages] = [false, '']
  const onStderr = (text: string) => {
    messages = text
  }
  const migrating = operatorHere(['migrate'], { DATABASE_URL: url }, { onStderr }).finally(() => {
    ended = true
  })
  // The message comes after two seconds, which is longer than lock_timeout of a migration.
  await until('it waits', () => messages.startsWith('Waiting for a lock '))
  t.notOk(ended)
  const [, waiting] = messages.match(/\(process (\d+) of PostgreSQL\): lock table /) ?? []
  const [search = ''] = codeBlocks('A command waits for a lock')
  const [
    {
      rows: [self],
    },
    found,
  ] = [await other.query('select pg_backend_pid() as pid'), await query(url, search)]
  t.match(
    found,
    withLengths([{ waiting: Number(waiting), blocker: self.pid }]),
    'the query of the runbook',
  )
  await other.query('rollback')
  t.match(await migrating, {
    code: 0,
    stdout: 'The schema is up to date.\n',
    stderr: /^Waiting for a lock .*\n$/,
  })
})

t.test('Locks of the service: migrate does not wait for them', async (t) => {
  const { url } = await createDatabase(t)
  const service = await openClient(t, await loginOfService(t, openAsOwner(t, url), url))
  // The first is the lock of Kysely's Migrator.
  for (const lock of ['3853314791062309107', '7310452']) {
    await service.query('select pg_advisory_lock($1)', [lock])
  }
  await service.query('begin')
  await service.query('select name from kysely_migration')
  t.match(await operatorHere(['migrate'], { DATABASE_URL: url }), { code: 0, stderr: '' })
  const lock = 'lock table kysely_migration in share row exclusive mode'
  await t.rejects(service.query(lock), { code: '42501' })
})

t.test('Role changed at the same moment from another database: migrate tries again', async (t) => {
  const { url } = await createDatabase(t)
  t.teardown(() => onServer(url, 'alter role investment_service nologin password null'))
  const other = await openClient(t, (await createDatabase(t)).url)
  await other.query('begin; alter role investment_service nologin')
  const env = { DATABASE_URL: url, SERVICE_DATABASE_PASSWORD: 'secret' }
  const migrating = operatorHere(['migrate'], env)
  const waiting = `select from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`
  const isWaiting = async () => (await query(url, waiting)).length > 0
  await until('migrate waits for the role', isWaiting)
  await other.query('commit')
  t.match(await migrating, { code: 0 })
})

t.test('Owner without superuser: replaces the rows of a connection', async (t) => {
  const { url } = await emptyDatabase(t)
  const env = { DATABASE_URL: await newOwner(t, url) }
  await closeToPublic(url)
  const call = async (...args: string[]) => {
    const { code, stderr, json } = await operatorHere([...args, '--json'], env)
    t.equal(code, 0, stderr)
    return json()
  }
  await call('migrate')
  await call('app', 'create', 'replaced')
  const { id } = await call('connection', 'create', '--app', 'replaced')
  const folder = t.testdir({
    all: [1, 2, 3].map((id) => portfolioLine(id)).join('\n'),
    some: [2, 3].map((id) => portfolioLine(id)).join('\n'),
  })
  const into = ['import', 'portfolio-transactions', '--connection', id]
  t.match(await call(...into, path.join(folder, 'all')), { inserted: 3 })
  const range = ['--replace', '--from', '2024-01-01']
  t.match(await call(...into, path.join(folder, 'some'), ...range), { unchanged: 2, removed: 1 })
  const { rows, differences } = await call('verify')
  t.same({ rows, differences }, { rows: 2, differences: [] })
})

const nameOf = (url: string) => new URL(url).pathname.slice(1)

/** Revokes what PUBLIC has in a new database. */
async function closeToPublic(url: string) {
  await onServer(url, `revoke all on database ${nameOf(url)} from public`)
  await onServer(url, 'revoke all on schema public from public')
}

/** Creates an owner of a database, who may configure the role of the service. */
async function newOwner(t: Test, url: string): Promise<string> {
  const role = `owner_${randomBytes(4).toString('hex')}`
  await onServer(url, `create role ${role} login createrole password 'secret'`)
  t.teardown(async () => {
    await onServer(url, `reassign owned by ${role} to postgres`)
    await onServer(url, `revoke investment_service from ${role}`)
    await onServer(url, `drop owned by ${role}`)
    await onServer(url, `drop role ${role}`)
  })
  await onServer(url, `grant investment_service to ${role} with admin option`)
  await onServer(url, `alter database ${nameOf(url)} owner to ${role}`)
  return Object.assign(new URL(url), { username: role, password: 'secret' }).href
}

/** Creates a database without a schema. */
async function emptyDatabase(t: Test): Promise<{ url: string }> {
  const server = String(process.env.TEST_SERVER_URL)
  const name = `test_${randomBytes(6).toString('hex')}`
  await onServer(server, `create database ${name} strategy file_copy`)
  t.teardown(() => dropDatabase(server, name))
  return { url: databaseUrl(server, name) }
}

async function migrateTo(t: Test, url: string, name = '') {
  const { error } = await new Migrator({ db: openAsOwner(t, url), provider }).migrateTo(name)
  if (error) throw error
}

// biome-ignore lint/suspicious/noExplicitAny: a test looks into whatever came.
async function query(connectionString: string, text: string): Promise<any[]> {
  const client = new pg.Client({ connectionString })
  await client.connect()
  return (await client.query(text).finally(() => client.end())).rows
}
