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
  const instance: Instance = {
    ...service,
    metrics: async () =>
      seriesOf(await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text()),
    workers: () => childrenOf(service.process.pid),
  }
  await untilTwoServe(instance)
  return instance
}

async function childrenOf(pid: number | undefined): Promise<number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '')
  return text.trim().split(' ').filter(Boolean).map(Number)
}

const isAlive = (pid: number) =>
  readFile(`/proc/${pid}/stat`, 'utf8').then(
    (stat) => !/\) [ZX] /.test(stat),
    () => false,
  )

/** Waits until two workers respond: new connections go to the workers in turn. */
async function untilTwoServe({ url, workers, output }: Instance): Promise<void> {
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

const requestsTotal = async ({ metrics }: Instance) => {
  let total = 0
  for (const [series, value] of await metrics())
    if (series.startsWith('http_requests_total')) total += value
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
  const statuses = Array.from({ length: 6 }, () => statusOf(service.url).catch(() => 'closed'))
  await sleep(500)
  process.kill(stopped, 'SIGKILL')
  const found = await within('each connection responds or is closed', Promise.all(statuses))
  t.equal(found.filter((status) => status === 'closed').length, 1)
  t.equal(found.filter((status) => status === 200).length, 5)
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
  await until('all workers are new', async () => {
    readiness.add(await statusOf(service.url, '/health/ready'))
    return service.output().includes('all workers are new')
  })
  t.same([...readiness], [200], 'the instance stays ready')
  const after = await service.workers()
  t.equal(after.length, 2)
  t.notOk(after.some((pid) => before.includes(pid)))
  const report = await stop()
  assertAllAnswered(t, report)
  t.ok((await requestsTotal(service)) >= counted + report.ok / 2, 'the counters go on')
  t.equal((await service.metrics()).get('workers_replaced_total'), 0)
})

t.test('SIGHUP: requests on new connections are not lost', async (t) => {
  const service = await start(t, { SHUTDOWN_DELAY_MS: '300' })
  const statuses: (number | string | undefined)[] = []
  let stopped = false
  const clients = Array.from({ length: 8 }, async () => {
    while (!stopped) statuses.push(await statusOf(service.url).catch(String))
  })
  for (let restarts = 1; restarts <= 3; restarts += 1) {
    service.process.kill('SIGHUP')
    const restarted = () => service.output().split('all workers are new').length > restarts
    await until('all workers are new', restarted)
  }
  stopped = true
  await Promise.all(clients)
  t.same([...new Set(statuses)], [200], `${statuses.length} requests`)
})

t.test('Start: both workers serve the first connections', async (t) => {
  const settings = { DATABASE_URL: login, WORKERS: '2', LOG_LEVEL: 'info' }
  const service = await startServiceProcess(t, settings)
  // The primary process passes connections on in turn. The second worker may listen a moment later.
  const sent = 50
  for (let n = 0; n < sent; n += 1) await statusOf(service.url, '/openapi.json')
  const line = /"pid":(\d+),.*"route":"\/openapi.json".*"msg":"request"/g
  const pids = () => [...service.output().matchAll(line)].map(([, pid]) => pid)
  await until('the log is complete', () => pids().length === sent)
  t.equal(new Set(pids()).size, 2)
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

t.test('/metrics: the sums of both workers', async (t) => {
  const service = await start(t, { DATABASE_POOL_SIZE: '3' })
  const before = await requestsTotal(service)
  const statuses = Array.from({ length: 20 }, () =>
    statusOf(service.url, request?.path, request?.token),
  )
  t.same(new Set(await Promise.all(statuses)), new Set([200]))
  t.equal(await requestsTotal(service), before + 20)
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
  let open = 0
  const sockets = Array.from({ length: 10 }, () => {
    const socket: Socket = connect(service.port, '127.0.0.1')
    open += 1
    return socket
      .on('error', () => {})
      .on('close', () => {
        open -= 1
      })
      .resume()
  })
  await until('four connections are closed', () => open === 6)
  for (const socket of sockets) socket.destroy()
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
