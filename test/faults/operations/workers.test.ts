import { readFile } from 'node:fs/promises'
import { Agent, get } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import t, { type Test } from 'tap'
import { freePort } from '../../../tools/embedded-postgres/free-port.ts'
import { seriesOf } from '../../support/metrics.ts'
import { hideNewestMigration } from '../../support/schema-behind.ts'
import { until } from '../../support/until.ts'
import { openTestDatabase } from '../support/database.ts'
import { addSampleData, recordOk, requestsOf } from '../support/golden-responses.ts'
import { assertAllAnswered, startGoldenLoad } from '../support/load.ts'
import {
  childrenOf,
  launchService,
  type ServiceProcess,
  startServiceProcess,
  untilReadyIs,
} from '../support/processes/service-process.ts'
import { within } from '../support/within.ts'

const { db, login } = await openTestDatabase(t)
const requests = requestsOf(await addSampleData(db, 100))
const [request] = requests

interface Instance extends ServiceProcess {
  metrics(): Promise<Map<string, number>>
  /** Process ids of the workers. */
  workers(): Promise<number[]>
}

/** Starts an instance with two workers, and waits until both run. */
async function start(t: Test, environment: Record<string, string> = {}): Promise<Instance> {
  const metricsPort = String(await freePort())
  const settings = { DATABASE_URL: login, WORKERS: '2', METRICS_PORT: metricsPort }
  const limits = { MAX_EVENT_LOOP_DELAY_MS: '0', SHUTDOWN_DELAY_MS: '2000', LOG_LEVEL: 'info' }
  const service = await startServiceProcess(t, { ...settings, ...limits, ...environment })
  t.teardown(() => t.passing() || process.stderr.write(service.output().slice(-5_000)))
  const instance: Instance = {
    ...service,
    metrics: async () =>
      seriesOf(await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text()),
    workers: () => childrenOf(service.process.pid),
  }
  await untilTwoServe(instance)
  return instance
}

const isAlive = (pid: number) =>
  readFile(`/proc/${pid}/stat`, 'utf8').then(
    (stat) => !/\) [ZX] /.test(stat),
    () => false,
  )

/** Waits until two workers respond: new connections go to the workers in turn. */
async function untilTwoServe({ url, workers, output }: Omit<Instance, 'metrics'>): Promise<void> {
  await until('two workers serve', async () => {
    // The log has a line of each request, with the process id.
    await statusOf(url, '/openapi.json').catch(() => {})
    const pids = await workers()
    const served = pids.filter((pid) => new RegExp(`"pid":${pid},.*"msg":"request"`).test(output()))
    return served.length === 2
  })
}

/** Sends a request on a new connection. */
function statusOf(url: string, path = '/health/live', token?: string): Promise<number | undefined> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
  return new Promise((resolve, reject) => {
    get(url + path, { agent: new Agent(), headers }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode))
    }).on('error', reject)
  })
}

/** @param label limits the sum, such as `status="401"` */
const requestsTotal = async ({ metrics }: Instance, label = '') => {
  let total = 0
  for (const [series, value] of await metrics())
    if (series.startsWith('http_requests_total') && series.includes(label)) total += value
  return total
}

const is200 = (status: number | undefined) => status === 200

/** Number of connections of the service to PostgreSQL. */
async function connections(): Promise<number> {
  const { rows } = await sql<{ n: number }>`select count(*)::int as n from pg_stat_activity
    where usename = ${new URL(login).username}`.execute(db)
  return rows[0]?.n ?? 0
}

t.test(
  'SIGKILL to a worker: only its requests in flight are lost, and it is replaced',
  async (t) => {
    const service = await start(t)
    const golden = await recordOk(service.url, requests)
    const clients = 8
    const stop = startGoldenLoad(t, { url: service.url, golden, clients })
    await sleep(500)
    const [killed, other] = (await service.workers()) as [number, number]
    const before = await requestsTotal(service)
    process.kill(killed, 'SIGKILL')
    await until('the other worker responds', () => statusOf(service.url).then(is200, () => false))
    await untilTwoServe(service)
    const after = await service.workers()
    t.ok(after.includes(other), 'the other worker is the same')
    t.notOk(after.includes(killed))
    const report = await stop()
    const { sent, errors, unavailable } = report
    process.stderr.write(`${t.name}: ${sent} sent, ${errors.length} lost\n`)
    t.ok(errors.length <= clients, `${errors.length} of ${sent} requests are lost`)
    for (const error of errors) t.match(error, /fetch failed|terminated|other side closed/)
    t.equal(unavailable, 0)
    t.ok((await requestsTotal(service)) >= before, 'the counters include the killed worker')
    t.equal((await service.metrics()).get('workers_replaced_total'), 1)
    t.match(service.output(), '"reason":"SIGKILL"')
  },
)

t.test('SIGKILL to a stopped worker: a connection passed to it is closed', async (t) => {
  const service = await start(t)
  const [stopped] = (await service.workers()) as [number, number]
  process.kill(stopped, 'SIGSTOP')
  const found: (number | string | undefined)[] = []
  const statuses = Array.from({ length: 6 }, async () =>
    found.push(await statusOf(service.url).catch(() => 'closed')),
  )
  await until('the other worker has responded', () => found.length === 5)
  // The primary process sends a further message to the stopped worker.
  await service.metrics()
  process.kill(stopped, 'SIGKILL')
  await within('each connection responds or is closed', Promise.all(statuses))
  t.same(found, [200, 200, 200, 200, 200, 'closed'])
})

t.test('SIGHUP under load: all workers are new, and no request is lost', async (t) => {
  const service = await start(t)
  const golden = await recordOk(service.url, requests)
  const stop = startGoldenLoad(t, { url: service.url, golden, clients: 8 })
  await sleep(300)
  const before = await service.workers()
  const counted = await requestsTotal(service)
  service.process.kill('SIGHUP')
  const readiness = new Set<number | undefined>()
  await until(
    'all workers are new',
    async () => {
      readiness.add(await statusOf(service.url, '/health/ready'))
      return service.output().includes('all workers are new')
    },
    120_000,
  )
  t.same([...readiness], [200], 'the instance stays ready')
  const after = await service.workers()
  t.equal(after.length, 2)
  t.notOk(after.some((pid) => before.includes(pid)))
  const report = await stop()
  assertAllAnswered(t, report)
  const goesOn = async () => (await requestsTotal(service)) >= counted + report.ok / 2
  await until('the counters go on', goesOn)
  t.equal((await service.metrics()).get('workers_replaced_total'), 0)
})

t.test('SIGHUP: requests on new connections are not lost', async (t) => {
  const service = await start(t, { SHUTDOWN_DELAY_MS: '300' })
  const statuses: (number | string | undefined)[] = []
  let stopped = false
  t.teardown(() => {
    stopped = true
  })
  const clients = Array.from({ length: 8 }, async () => {
    while (!stopped) statuses.push(await statusOf(service.url).catch(String))
  })
  for (let restarts = 1; restarts <= 3; restarts += 1) {
    service.process.kill('SIGHUP')
    const restarted = () => service.output().split('all workers are new').length > restarts
    await until('all workers are new', restarted, 120_000)
  }
  stopped = true
  await Promise.all(clients)
  t.same([...new Set(statuses)], [200], `${statuses.length} requests`)
  t.notMatch(service.output(), 'killed by timeout')
})

t.test('Start: the instance listens when both workers can', async (t) => {
  await until('no connection to PostgreSQL is left', async () => (await connections()) === 0)
  const settings = { DATABASE_URL: login, WORKERS: '2', LOG_LEVEL: 'info' }
  const service = await startServiceProcess(t, settings)
  // Before it listens, a worker checks the schema on its own connection.
  t.ok((await connections()) >= 2)
  await untilTwoServe({ ...service, workers: () => childrenOf(service.process.pid) })
})

t.test('Exit code 1: a worker that does not respond is killed', async (t) => {
  const service = await start(t, { SHUTDOWN_DELAY_MS: '0', SHUTDOWN_GRACE_MS: '1000' })
  const [stopped] = (await service.workers()) as [number, number]
  process.kill(stopped, 'SIGSTOP')
  t.equal(await service.end('SIGTERM'), 1)
  await until('the worker has ended', async () => !(await isAlive(stopped)))
})

t.test('SIGTERM to all processes under load: not ready, and no request is lost', async (t) => {
  const service = await start(t, { SHUTDOWN_DELAY_MS: '6000' })
  const golden = await recordOk(service.url, requests)
  const stop = startGoldenLoad(t, { url: service.url, golden, clients: 8 })
  await sleep(300)
  const workers = await service.workers()
  // systemd signals each process of a unit, and a terminal each one in the foreground.
  for (const pid of [Number(service.process.pid), ...workers]) process.kill(pid, 'SIGTERM')
  for (const _ of workers) await untilReadyIs(service, 503)
  await sleep(500)
  assertAllAnswered(t, await stop())
  t.equal(await service.ended(), 0)
  for (const pid of workers) t.notOk(await isAlive(pid))
  t.equal(await connections(), 0)
})

t.test('SIGKILL to the primary process: no worker is left', async (t) => {
  const service = await start(t)
  const workers = await service.workers()
  await service.end('SIGKILL')
  for (const pid of workers) await until('the worker has ended', async () => !(await isAlive(pid)))
  await until('no connection to PostgreSQL is left', async () => (await connections()) === 0)
})

t.test('SIGTERM twice: the service ends immediately, with exit code 1', async (t) => {
  const service = await start(t, { SHUTDOWN_DELAY_MS: '600000' })
  const workers = await service.workers()
  service.process.kill('SIGTERM')
  await untilReadyIs(service, 503)
  t.equal(await service.end('SIGTERM'), 1)
  for (const pid of workers) await until('the worker has ended', async () => !(await isAlive(pid)))
})

t.test('SIGTERM during SIGHUP: none of three workers is ready', async (t) => {
  const service = await start(t, { SHUTDOWN_DELAY_MS: '600000' })
  service.process.kill('SIGHUP')
  await until('a worker is closing', () => service.output().includes('"signal":"SIGHUP"'))
  t.equal((await service.workers()).length, 3)
  service.process.kill('SIGTERM')
  // New connections go to the workers in turn.
  await until('twelve requests in a row get 503', async () => {
    for (let sent = 0; sent < 12; sent += 1)
      if ((await statusOf(service.url, '/health/ready')) !== 503) return false
    return true
  })
  t.equal(await service.end('SIGTERM'), 1)
})

t.test('/metrics: the sums of both workers', async (t) => {
  const service = await start(t, { DATABASE_POOL_SIZE: '3' })
  const statuses = Array.from({ length: 20 }, () => statusOf(service.url, request?.path, 'unknown'))
  t.same(new Set(await Promise.all(statuses)), new Set([401]))
  // A worker that does not respond within a second is missing.
  const isCounted = async () => (await requestsTotal(service, 'status="401"')) === 20
  await until('the sum of both workers is 20', isCounted)
  t.equal((await service.metrics()).get('response_memory_limit_bytes'), 288 * 2 ** 20)
  // The pools of both workers, and a connection of each for health checks.
  t.ok((await connections()) <= 3 + 2)
})

t.test('429: the quota is exact over both workers', async (t) => {
  const service = await start(t, { RATE_LIMIT_PER_MINUTE: '60' })
  const statuses = await Promise.all(
    Array.from({ length: 100 }, () => statusOf(service.url, request?.path, request?.token)),
  )
  t.equal(statuses.filter((status) => status === 200).length, 60)
  t.equal(statuses.filter((status) => status === 429).length, 40)
})

t.test('MAX_SOCKETS of both workers: further connections are closed', async (t) => {
  const service = await start(t, { MAX_SOCKETS: '6' })
  const open = new Set<Socket>()
  /** Resolves with true when the connection has got a response, and false when it is closed. */
  const opens = () =>
    new Promise<boolean>((resolve) => {
      const socket: Socket = connect(service.port, '127.0.0.1')
      open.add(socket)
      socket.on('error', () => {}).write('GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n')
      socket
        .once('data', () => resolve(true))
        .on('close', () => {
          open.delete(socket)
          resolve(false)
        })
    })
  // A busy worker leaves further connections to the other one, which may have its share.
  await until('six connections are open', async () => {
    await opens()
    return open.size === 6
  })
  const further = await Promise.all(Array.from({ length: 10 }, opens))
  t.same(new Set(further), new Set([false]))
  t.equal(open.size, 6)
  for (const socket of open) socket.destroy()
  // The workers learn of the closed connections one after the other.
  await until('a further request gets 200', async () => {
    const status = await statusOf(service.url, request?.path, request?.token).catch(() => 0)
    return status === 200
  })
})

t.test('worker cannot start any more: the pauses grow, and the others respond', async (t) => {
  const service = await start(t)
  const { name, restore } = await hideNewestMigration(db)
  const starts = () => service.output().split(`It lacks ${name}`).length - 1
  const [first, second] = (await service.workers()) as [number, number]
  service.process.kill('SIGHUP')
  await until('the restart stops', () => service.output().includes('the restart stops'))
  t.same(await service.workers(), [first, second], 'both workers still run')
  process.kill(first, 'SIGKILL')
  await until('two replacements have failed', () => starts() >= 3)
  const [before, since] = [starts(), performance.now()]
  t.same(new Set([await statusOf(service.url), await statusOf(service.url)]), new Set([200]))
  await sleep(3_000)
  const perSecond = (starts() - before) / ((performance.now() - since) / 1_000)
  t.ok(perSecond < 2, `${perSecond} starts a second`)
  await restore()
  await untilTwoServe(service)
  await untilReadyIs(service, 200)
  t.equal(await service.end('SIGTERM'), 0)
})

t.test('first start fails: one sentence and exit code 1', async (t) => {
  const taken = await start(t)
  const fails = async (environment: Record<string, string>) => {
    const settings = { DATABASE_URL: login, WORKERS: '3', LOG_LEVEL: 'silent', ...environment }
    const program = await launchService(t, settings)
    t.equal(await program.ended(), 1)
    return program.output()
  }
  t.equal(
    await fails({ PORT: String(taken.port) }),
    `Port ${taken.port} is in use: set PORT to another one.\n`,
  )
  for (const WORKERS of ['0', '65', '1.5', 'all']) {
    t.equal(await fails({ WORKERS }), 'WORKERS must be auto, or a number from 1 to 64\n')
  }
  const { restore } = await hideNewestMigration(db)
  t.match(await fails({ PORT: '0' }), /^The database schema is outdated[^\n]*\n$/)
  await restore()
})
