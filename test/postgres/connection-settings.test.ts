import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import t, { type Test } from 'tap'
import { readConfig } from '../../src/config.ts'
import { Database } from '../../src/postgres/database.ts'
import { findServers } from '../../src/postgres/hosts.ts'
import { readServer } from '../../src/postgres/readiness.ts'
import { serverName } from '../../src/postgres/server-urls.ts'
import { databaseOptions } from '../../src/service.ts'
import { createDatabase, openClient, readerOf } from '../support/database.ts'
import { loginOfService, openAsOwner } from '../support/logins.ts'
import { openTestDatabase } from '../support/new-database.ts'
import { operatorHere } from '../support/operator-process.ts'

const { url } = await createDatabase(t)
const options = { size: 1, pooler: false }

const settings = {
  name: 'settings',
  title: 'settings',
  text: `select jsonb_object_agg(name, setting) from pg_settings
    where source = 'client' and name <> 'application_name' and not name ^@ 'client'`,
}

t.test('connection: read-only, with timeouts, and with plans of index lookups', async (t) => {
  const given = `${url}?options=-c%20work_mem%3D5MB%20-c%20statement_timeout%3D0`
  const db = new Database({ url: given, ...options, statementTimeoutMs: 4_000 })
  t.teardown(() => db.close())
  const expected = {
    // In kilobytes.
    work_mem: '5120',
    default_transaction_read_only: 'on',
    statement_timeout: '4000',
    // A fifth of it.
    lock_timeout: '800',
    plan_cache_mode: 'force_generic_plan',
    jit: 'off',
    enable_seqscan: 'off',
    enable_bitmapscan: 'off',
    enable_sort: 'off',
    search_path: 'public',
    row_security: 'on',
    default_transaction_isolation: 'read committed',
  }
  for (const rows of [await db.read(settings, [], readerOf()), await db.probe(settings, [])]) {
    const [found] = rows.shift() ?? []
    t.match(JSON.parse(String(found)), expected)
  }
})

t.test('transaction_timeout and idle_session_timeout of the database end no read', async (t) => {
  const { url, db, login } = await openTestDatabase(t)
  const { rows } = await sql<{ name: string }>`
    select name from pg_settings where name in ('idle_session_timeout', 'transaction_timeout')`.execute(
    db,
  )
  const database = sql.id(new URL(url).pathname.slice(1))
  for (const { name } of rows)
    await sql`alter database ${database} set ${sql.id(name)} = '50ms'`.execute(db)
  const service = new Database({ url: login, ...options, statementTimeoutMs: 4_000 })
  t.teardown(() => service.close())
  const process = { name: 'process', title: 'process', text: 'select pg_backend_pid()' }
  const long = { name: 'long', title: 'long', text: 'select pg_backend_pid() from pg_sleep(0.2)' }
  const [first] = (await service.read(process, [], readerOf())).shift() ?? []
  const [second] = (await service.read(long, [], readerOf())).shift() ?? []
  await sleep(200)
  const [third] = (await service.read(process, [], readerOf())).shift() ?? []
  t.same([second, third], [first, first], 'the connection is the same')
})

t.test('format of days: that of the API, also if the database has another one', async (t) => {
  const { url, db, login } = await openTestDatabase(t)
  const { pathname } = new URL(url)
  await sql`alter database ${sql.id(pathname.slice(1))} set datestyle = 'German'`.execute(db)
  const service = new Database({ url: login, ...options, statementTimeoutMs: 4_000 })
  t.teardown(() => service.close())
  const day = { name: 'day', title: 'day', text: `select date '2025-02-14'` }
  const rows = await service.read(day, [], readerOf())
  t.same(rows.shift(), ['2025-02-14'])
  t.equal((await operatorHere(['app', 'create', 'app'], { DATABASE_URL: url })).code, 0)
  const { stdout } = await operatorHere(['app', 'list'], { DATABASE_URL: url })
  t.match(stdout, /app +- +2\d{3}-\d{2}-\d{2}T/)
  t.equal((await operatorHere(['verify'], { DATABASE_URL: url })).code, 0)
})

t.test('25006: a write of the owner through a connection of the service', async (t) => {
  const db = new Database({ url, ...options, statementTimeoutMs: 4_000 })
  t.teardown(() => db.close())
  const text = `insert into app (name) values ('written') returning 1`
  await t.rejects(db.read({ name: '', title: 'write', text }, [], readerOf()), { code: '25006' })
})

t.test('locked table: a read fails long before its statement timeout', async (t) => {
  const db = new Database({ url, ...options, statementTimeoutMs: 10_000 })
  t.teardown(() => db.close())
  const holder = await openClient(t, url)
  await holder.query('begin; lock table app in access exclusive mode')
  const text = 'select count(*) from app'
  await t.rejects(db.read({ name: '', title: 'locked', text }, [], readerOf()), {
    cause: { code: '55P03' },
  })
  await holder.query('rollback')
})

t.test('name of a server: host and port, an IPv6 address in brackets', async (t) => {
  const name = (place: string) => serverName(`postgres://user:secret@${place}/db`)
  t.equal(name('db.example'), 'db.example:5432')
  t.equal(name('10.0.0.1:5433'), '10.0.0.1:5433')
  t.equal(name('[2001:db8::1]:5433'), '[2001:db8::1]:5433')
})

t.test('the role of the service may read cluster and timeline', async (t) => {
  const login = await loginOfService(t, openAsOwner(t, url), url)
  const options = { statementTimeoutMs: 5_000, pooler: false }
  const client = await openClient(t, url)
  const { rows } = await client.query(`
    select system_identifier::text as cluster, timeline_id as timeline,
      pg_postmaster_start_time()::text as started
    from pg_control_system(), pg_control_checkpoint()`)
  t.same(await findServers(options, [login], 0), [{ url: login, ...rows[0] }])
})

t.test('password of the database', async (t) => {
  const PASSWORD = 'a-secret-of-the-database'
  /** Requests for a password: authentication messages 3 and 5 of PostgreSQL's protocol. */
  const REQUESTS = {
    'in clear text': Buffer.from('R\0\0\0\x08\0\0\0\x03', 'latin1'),
    'as MD5': Buffer.from('R\0\0\0\x0c\0\0\0\x05salt', 'latin1'),
  }

  for (const [form, request] of Object.entries(REQUESTS)) {
    t.test(`server that asks for the password ${form}, without TLS: it gets none`, async (t) => {
      const server = await startFake(t, request)
      const DATABASE_URL = `postgresql://owner:${PASSWORD}@127.0.0.1:${server.port}/investments`
      const { code, stderr } = await operatorHere(['app', 'list'], { DATABASE_URL })
      t.equal(code, 1)
      t.match(stderr, `asks for the password ${form}, and the connection has no TLS`)
      t.notMatch(stderr, PASSWORD)

      const db = new Database(databaseOptions(readConfig({ DATABASE_URL }), DATABASE_URL))
      t.teardown(() => db.close())
      const error: Error = await readServer(db).then(
        () => new Error('connected'),
        (thrown) => thrown,
      )
      t.match(String(error.cause ?? error), `asks for the password ${form}`, 'the service')
      t.ok(server.attempts() >= 2, 'both have connected')
      t.same(server.passwords(), [], 'no message with a password')
    })
  }

  /** Starts a server that answers the first message of a client with `request`, and keeps what follows. */
  async function startFake(t: Test, request: Buffer) {
    let attempts = 0
    const received: Buffer[] = []
    const server = createServer((socket) => {
      socket.on('error', () => {})
      socket.once('data', () => {
        attempts += 1
        socket.write(request)
        socket.on('data', (data) => received.push(data))
      })
    }).listen(0, '127.0.0.1')
    t.teardown(() => server.close())
    await once(server, 'listening')
    return {
      port: (server.address() as AddressInfo).port,
      attempts: () => attempts,
      passwords: () => received.map(String).filter((data) => data.startsWith('p')),
    }
  }
})
