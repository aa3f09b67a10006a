import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { freePort } from '../../tools/embedded-postgres/free-port.ts'
import { addSampleData, recordOk, requestsOf, sendAndRead } from '../support/golden-responses.ts'
import { assertNoErrors, startGoldenLoad } from '../support/load.ts'
import { openAsOwner } from '../support/logins.ts'
import { operatorHere } from '../support/operator-process.ts'
import { isProblem } from '../support/problem.ts'
import {
  type ServiceProcess,
  startServiceProcess,
  untilReadyIs,
} from '../support/processes/service-process.ts'
import { addCaller } from '../support/rows.ts'
import {
  type DebianPostgres,
  firstValue,
  migrate,
  onPort,
  startDebianPostgres,
  startStandby,
} from '../support/servers/debian-postgres.ts'
import { startPgBouncer } from '../support/servers/pgbouncer.ts'
import { until } from '../support/until.ts'

// Each test continues with the servers as the test before left them.

const one = await startDebianPostgres(t)
const login = await migrate(one.url)
const db = openAsOwner(t, one.url)
const requests = requestsOf(await addSampleData(db, 300))
const { connection, token } = await addCaller(db)
const two = await startStandby(t, one)
const both = login.replace(/(?<=@)[^/]+/, `127.0.0.1:${one.port},127.0.0.1:${two.port}`)

const query = ({ url }: DebianPostgres, statement: string) => firstValue(url, statement)

async function untilCaughtUp(standby: DebianPostgres, primary: DebianPostgres): Promise<void> {
  const lsn = await query(primary, 'select pg_current_wal_lsn()')
  const replayed = `select pg_last_wal_replay_lsn() >= '${lsn}'`
  await until('the standby has caught up', async () => (await query(standby, replayed)) === true)
}

const addRow = (primary: DebianPostgres) =>
  query(
    primary,
    `insert into account_transaction
      (connection_id, movement_id, account_id, type, amount, operation_date_day)
      values (${connection.id}, gen_random_uuid(), gen_random_uuid(), 'DEPOSIT', 1, '2025-01-01')`,
  )

/** Starts the service with metrics; returns it and the value of database_standby. */
async function serve(t: Test, environment: Record<string, string>) {
  const port = await freePort()
  const service = await startServiceProcess(t, { METRICS_PORT: String(port), ...environment })
  const standbyMetric = async () => {
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
    return /^database_standby (.*)$/m.exec(text)?.[1]
  }
  return { service, standbyMetric }
}

const readList = ({ url }: ServiceProcess, headers = {}) =>
  sendAndRead(url, { path: connection.account, token }, { headers })
const totalOf = async (service: ServiceProcess) =>
  JSON.parse((await readList(service)).text).totalItems

const linesOf = (service: ServiceProcess, message: string) =>
  service
    .output()
    .split('\n')
    .filter((line) => line.includes(`"msg":"${message}"`))

/** Waits until the last line with this message has a detail. A response may arrive before its line. */
const untilLogged = (service: ServiceProcess, message: string, detail: string) =>
  until(`the log says: ${message}, ${detail}`, () =>
    Boolean(linesOf(service, message).at(-1)?.includes(detail)),
  )

/** Ends the primary under load and promotes the standby. The service must follow by itself. */
async function failOver(t: Test, service: ServiceProcess, end: () => Promise<void>) {
  const [standby] = (await query(one, 'select pg_is_in_recovery()')) ? [one] : [two]
  await untilCaughtUp(standby, standby === one ? two : one)
  const golden = await recordOk(service.url, requests)
  const stop = startGoldenLoad(t, { url: service.url, golden, clients: 4 })
  await sleep(300)
  await end()
  await query(standby, 'select pg_promote()')
  const promotedAt = performance.now()
  await untilReadyIs(service, 200)
  const ms = Math.round(performance.now() - promotedAt)
  await sleep(300)
  assertNoErrors(t, await stop(), `, ready ${ms} ms after the promotion`)
  t.same(await recordOk(service.url, requests), golden, 'responses and ETags are as before')
  await untilLogged(service, 'the primary has changed', `127.0.0.1:${standby.port}`)
}

const single = await serve(t, { DATABASE_URL: login })
const { service } = await serve(t, {
  DATABASE_URL: `${both}?target_session_attrs=read-write`,
  DATABASE_REPLICA_URL: both,
})

t.test('Standby in DATABASE_URL: not ready and 503, unless the URL allows it', async (t) => {
  const url = onPort(login, two.port)
  const { service, standbyMetric } = await serve(t, { DATABASE_URL: url })
  await untilReadyIs(service, 503)
  const ready = await sendAndRead(service.url, { path: '/health/ready' })
  t.equal(JSON.parse(ready.text).detail, 'The database is a standby: its data may be old.')
  isProblem(t, await readList(service), 'service_unavailable')
  t.equal(await standbyMetric(), '1')
  await untilLogged(service, 'not ready', 'standby')
  await untilLogged(service, 'request could not be served', `127.0.0.1:${two.port} is a standby`)

  const allowed = await serve(t, { DATABASE_URL: `${url}?target_session_attrs=any` })
  await untilReadyIs(allowed.service, 200)
  t.equal((await readList(allowed.service)).status, 200)
  t.equal(await allowed.standbyMetric(), '1')
})

t.test('Standby behind PgBouncer: not ready, unless the URL allows it', async (t) => {
  const bouncer = await startPgBouncer(t, onPort(login, two.port), 3)
  const settings = { DATABASE_POOLER: 'true' }
  const url = bouncer.through(login)
  const { service, standbyMetric } = await serve(t, { ...settings, DATABASE_URL: url })
  await untilReadyIs(service, 503)
  t.equal(await standbyMetric(), '1')
  const allowed = await serve(t, { ...settings, DATABASE_URL: `${url}?target_session_attrs=any` })
  await untilReadyIs(allowed.service, 200)
})

t.test('Two hosts: the service follows a promotion', async (t) => {
  await untilReadyIs(single.service, 200)
  t.equal(await single.standbyMetric(), '0')
  await failOver(t, service, one.stop)
  await addRow(two)
  t.equal(await totalOf(service), 1)
  const environment = { DATABASE_URL: both.replace('investment_service', 'postgres') }
  t.equal((await operatorHere(['app', 'list'], environment)).code, 0, 'the operator follows')
})

t.test('Primary that became a standby: not ready, and no response with its data', async (t) => {
  await one.follow(two)
  await untilReadyIs(single.service, 503)
  const load = Array.from({ length: 20 }, () => readList(single.service))
  for (const response of await Promise.all(load)) isProblem(t, response, 'service_unavailable')
  await until('the metric', async () => (await single.standbyMetric()) === '1')
  await untilLogged(single.service, 'not ready', 'standby')
  t.equal(await totalOf(service), 1, 'two hosts: the new primary responds')
  const environment = { DATABASE_URL: both.replace('investment_service', 'postgres') }
  t.equal((await operatorHere(['app', 'list'], environment)).code, 0, 'the operator follows')
})

t.test('Two hosts, the primary hangs: the service follows a promotion and stays', async (t) => {
  await failOver(t, service, two.freeze)
  await addRow(one)
  await two.resume()
  for (let turn = 0; turn < 20; turn += 1) t.equal(await totalOf(service), 2)
  await untilReadyIs(single.service, 200)
  t.equal(await totalOf(single.service), 2, 'one host: ready again after its promotion')
})

t.test('Commits lost by a promotion: their ETag is never used again', async (t) => {
  const three = await startStandby(t, one)
  const hosts = login.replace(/(?<=@)[^/]+/, `127.0.0.1:${one.port},127.0.0.1:${three.port}`)
  const { service } = await serve(t, { DATABASE_URL: hosts })
  const known = await readList(service)
  // Stops the replication.
  await query(three, `alter system set primary_conninfo = ''`)
  await query(three, 'select pg_reload_conf()')
  const receivers = 'select count(*)::int from pg_stat_wal_receiver'
  await until('the replication has ended', async () => (await query(three, receivers)) === 0)
  await addRow(one)
  const lost = await readList(service)
  t.not(lost.headers.get('etag'), known.headers.get('etag'))
  await one.stop()
  await query(three, 'select pg_promote()')
  await untilReadyIs(service, 200)
  const ifNoneMatch = { 'if-none-match': String(lost.headers.get('etag')) }
  const after = await readList(service, ifNoneMatch)
  t.equal(after.status, 200, 'a client with lost rows gets the list again')
  t.equal(after.text, known.text)
  await addRow(three)
  const changed = await readList(service, ifNoneMatch)
  t.equal(changed.status, 200)
  t.not(changed.text, lost.text)
})

t.test('Two live primaries: a new service and the operator use the newer one', async (t) => {
  const old = await startDebianPostgres(t)
  const oldLogin = await migrate(old.url)
  const caller = await addCaller(openAsOwner(t, old.url))
  const promoted = await startStandby(t, old)
  const hosts = `127.0.0.1:${old.port},127.0.0.1:${promoted.port}`
  const url = oldLogin.replace(/(?<=@)[^/]+/, hosts)
  const owner = old.url.replace(/(?<=@)[^/]+/, hosts)
  const items = async (each: ServiceProcess) => {
    const request = { path: caller.connection.account, token: caller.token }
    const { status, text } = await sendAndRead(each.url, request)
    return status === 200 ? JSON.parse(text).totalItems : status
  }
  await query(promoted, 'select pg_promote()')
  await query(
    promoted,
    `insert into account_transaction
      (connection_id, movement_id, account_id, type, amount, operation_date_day)
      values (${caller.connection.id}, gen_random_uuid(), gen_random_uuid(), 'DEPOSIT', 1, '2025-01-01')`,
  )
  const { service } = await serve(t, { DATABASE_URL: url })
  await untilReadyIs(service, 200)
  t.equal(await items(service), 1, 'a new service')
  t.equal((await operatorHere(['app', 'create', 'new'], { DATABASE_URL: owner })).code, 0)
  const created = `select count(*)::int from app where name = 'new'`
  t.equal(await query(promoted, created), 1)
  t.equal(await query(old, created), 0)

  await promoted.stop()
  await untilReadyIs(service, 503)
  t.equal(await items(service), 503, 'the superseded primary is not used')
  const reason = `127.0.0.1:${old.port} is a superseded primary: it lacks changes of 127.0.0.1:${promoted.port}`
  await until('the reason is logged', async () => service.output().includes(reason))
  await promoted.start()
  await untilReadyIs(service, 200)
  t.equal(await items(service), 1)
})

t.test('Two promoted standbys: the operator and a new service refuse to choose one', async (t) => {
  const primary = await startDebianPostgres(t)
  const login = await migrate(primary.url)
  const standbys = [await startStandby(t, primary), await startStandby(t, primary)] as const
  await primary.stop()
  for (const standby of standbys) await query(standby, 'select pg_promote()')
  const hosts = standbys.map(({ port }) => `127.0.0.1:${port}`)
  const environment = { DATABASE_URL: primary.url.replace(/(?<=@)[^/]+/, hosts.join()) }
  const { code, stderr } = await operatorHere(['app', 'create', 'new'], environment)
  t.equal(code, 1)
  t.match(
    stderr,
    / are both primaries, and neither replaced the other: DATABASE_URL must name only/,
  )
  for (const host of hosts) t.match(stderr, host)
  const either = login.replace(/(?<=@)[^/]+/, hosts.join())
  const { service } = await serve(t, { DATABASE_URL: either })
  await untilReadyIs(service, 503)
  await until('the reason is logged', async () => service.output().includes('both primaries'))
  // Two addresses of one server are no conflict.
  const [one] = standbys
  const twice = one.url.replace(/(?<=@)[^/]+/, `127.0.0.1:${one.port},localhost:${one.port}`)
  t.equal((await operatorHere(['app', 'create', 'new'], { DATABASE_URL: twice })).code, 0)
})

t.test('Two hosts, no primary: 503, and the operator names both', async (t) => {
  await two.stop()
  await untilReadyIs(service, 503)
  isProblem(t, await readList(service), 'service_unavailable')
  const { code, stderr } = await operatorHere(['app', 'list'], { DATABASE_URL: both })
  t.equal(code, 1)
  t.match(
    stderr,
    /^No server in DATABASE_URL is a primary that responds \(.*; .*\)\.\nThe database is .*\.\n$/,
  )
})
