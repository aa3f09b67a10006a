import t from 'tap'
import { findServers } from '../../src/postgres/connect.ts'
import { openDatabase } from '../../src/postgres/database.ts'
import { serverName } from '../../src/postgres/server-urls.ts'
import { contextOf, createDatabase, openClient } from '../support/database.ts'
import { loginOfService, openAsOwner } from '../support/logins.ts'

const { url } = await createDatabase(t)
const options = { size: 1, waitMs: 3_000, pooler: false }

const settings = {
  name: 'settings',
  title: 'settings',
  text: `select jsonb_object_agg(name, setting) from pg_settings
    where source = 'client' and name <> 'application_name' and not name ^@ 'client'`,
}

t.test('connection: read-only, with timeouts, and with plans of index lookups', async (t) => {
  const db = openDatabase({ url, ...options, statementTimeoutMs: 4_000 })
  t.teardown(() => db.close())
  const expected = {
    default_transaction_read_only: 'on',
    statement_timeout: '4000',
    // A fifth of it.
    lock_timeout: '800',
    plan_cache_mode: 'force_generic_plan',
    jit: 'off',
    enable_seqscan: 'off',
    enable_bitmapscan: 'off',
    enable_sort: 'off',
  }
  for (const read of [db.read, db.probe]) {
    const [found] = (await read(settings, [], contextOf())).shift() ?? []
    t.match(JSON.parse(String(found)), expected)
  }
})

t.test('25006: a write of the owner through a connection of the service', async (t) => {
  const db = openDatabase({ url, ...options, statementTimeoutMs: 4_000 })
  t.teardown(() => db.close())
  const text = `insert into app (name) values ('written') returning 1`
  await t.rejects(db.read({ name: '', title: 'write', text }, [], contextOf()), { code: '25006' })
})

t.test('locked table: a read fails long before its statement timeout', async (t) => {
  const db = openDatabase({ url, ...options, statementTimeoutMs: 10_000 })
  t.teardown(() => db.close())
  const holder = await openClient(t, url)
  await holder.query('begin; lock table app in access exclusive mode')
  const text = 'select count(*) from app'
  await t.rejects(db.read({ name: '', title: 'locked', text }, [], contextOf()), {
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
  const options = { waitMs: 5_000, statementTimeoutMs: 5_000, pooler: false }
  const client = await openClient(t, url)
  const { rows } = await client.query(`
    select system_identifier::text as cluster, timeline_id as timeline,
      pg_postmaster_start_time()::text as started
    from pg_control_system(), pg_control_checkpoint()`)
  t.same(await findServers(options, [login], 0), [{ url: login, ...rows[0] }])
})
