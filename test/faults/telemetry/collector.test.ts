import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { freePort } from '../../../tools/embedded-postgres/free-port.ts'
import { createDatabase } from '../../support/database.ts'
import { loginOfService, openAsOwner } from '../../support/logins.ts'
import { until } from '../../support/until.ts'
import { allAnswered, keepAsking } from '../support/load.ts'
import { startServiceProcess } from '../support/processes/service-process.ts'
import { faultOf, fillWorld, type Known, learn, questionsOf } from '../support/truth.ts'

/** Traces are nobody's business but the operator's: whoever asks for rows does not feel them. */
const { url } = await createDatabase(t)
const db = openAsOwner(t, url)
const DATABASE_URL = await loginOfService(t, db, url)
const questions = questionsOf(await fillWorld(db, 500)).filter(({ path }) => /limit=20$/.test(path))

t.test('Without a collector no SDK of OpenTelemetry is loaded, and nobody called', async (t) => {
  const tell = new URL('../support/processes/print-imports-and-connections.ts', import.meta.url)
    .href
  const start = async (settings: Record<string, string>) => {
    const own = { DATABASE_URL, NODE_OPTIONS: `--import=${tell}`, ...settings }
    const service = await startServiceProcess(t, own)
    await learn(service.url, questions)
    t.equal(await service.end('SIGTERM'), 0)
    const told = service.said().split('\n')
    const calls = told.filter((line) => line.startsWith('connects to '))
    const ours = calls.filter((line) => portOf(line) === Number(new URL(url).port))
    t.ok(ours.length > 0, 'it told of its connections to the database')
    // prom-client brings its interfaces, which do nothing by themselves.
    const loaded = told.filter((line) => /^loads .*@opentelemetry.(?!api\b)/.test(line))
    return { loaded: loaded.length, others: calls.filter((line) => !ours.includes(line)) }
  }
  t.same(await start({}), { loaded: 0, others: [] })
  const OTEL_EXPORTER_OTLP_ENDPOINT = `http://127.0.0.1:${await freePort()}`
  const on = await start({ OTEL_EXPORTER_OTLP_ENDPOINT })
  t.ok(on.loaded > 0, 'which would have been told')
  t.same([...new Set(on.others.map(portOf))], [Number(new URL(OTEL_EXPORTER_OTLP_ENDPOINT).port)])
})

/** Where a line of print-imports-and-connections.ts says that a socket connects to, in either form of `connect`. */
function portOf(line: string): number {
  const [target] = JSON.parse(line.slice(line.indexOf('['))).flat()
  return Number(target.port ?? target)
}

const LOAD_MS = 20_000
const SHUTDOWN_DELAY_MS = 1_000
/** What spans that are left may take to leave, and what a machine may that has much to do. */
const LAST_CALL_MS = 2_000 + 10_000

t.test('A collector that is away, hangs or refuses costs no request', async (t) => {
  const endpoints = {
    'no collector': undefined,
    'one that is away': `http://127.0.0.1:${await freePort()}`,
    'one that hangs': await startCollector(t, createServer()),
    'one that refuses': await startCollector(
      t,
      createServer((request, response) => {
        request.resume().on('end', () => response.writeHead(401).end('who are you?'))
      }),
    ),
  }
  const services = await Promise.all(
    Object.entries(endpoints).map(async ([name, endpoint]) => {
      // As often as with many more requests.
      const often = { OTEL_BSP_SCHEDULE_DELAY: '100' }
      const own = endpoint === undefined ? {} : { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, ...often }
      const program = await startServiceProcess(t, {
        DATABASE_URL,
        MAX_EVENT_LOOP_DELAY_MS: '0',
        SHUTDOWN_DELAY_MS: String(SHUTDOWN_DELAY_MS),
        ...own,
      })
      return { name, ...program, tookMs: [] as number[] }
    }),
  )
  const [plain, ...traced] = services
  const known = await learn(String(plain?.url), questions)
  let turn = 0
  // All at the same time, so that what else this machine does is the same for each.
  const stop = keepAsking(t, services.length, async (client) => {
    turn += 1
    const service = services[client] as (typeof services)[number]
    const start = performance.now()
    const fault = await faultOf(service.url, known[turn % known.length] as Known)
    service.tookMs.push(performance.now() - start)
    return fault
  })
  await sleep(LOAD_MS)
  allAnswered(t, await stop())
  const usualMs = medianOf(plain?.tookMs ?? [])
  for (const { name, tookMs } of services) {
    const median = medianOf(tookMs)
    process.stderr.write(`${name}: ${tookMs.length} sent, median ${median.toFixed(1)} ms\n`)
    t.ok(median < 2 * usualMs, `${name}: ${median} ms, and ${usualMs} ms without a collector`)
  }
  t.equal(plain?.said(), '')
  for (const { name, said, end } of traced) {
    await until(`it is told: ${name}`, () => linesOf(said()).length > 0)
    const start = performance.now()
    t.equal(await end('SIGTERM'), 0, 'exit code')
    const tookMs = performance.now() - start
    t.ok(tookMs < SHUTDOWN_DELAY_MS + LAST_CALL_MS, `${name}: ended after ${tookMs} ms`)
    const lines = linesOf(said())
    t.same([...new Set(lines.map(({ msg }) => msg))], ['traces cannot be exported'])
    const messages = lines.map(({ message }) => message)
    t.equal(new Set(messages).size, messages.length, `${name}: each is told once`)
  }
})

function linesOf(said: string): { msg: string; message: string }[] {
  const lines = said.split('\n').filter((line) => line !== '')
  return lines.map((line) => JSON.parse(line))
}

function medianOf(times: number[]): number {
  return times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? 0
}

/** Its address; connections that it left open end with the test. */
async function startCollector(t: Test, server: Server): Promise<string> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => sockets.add(socket))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
