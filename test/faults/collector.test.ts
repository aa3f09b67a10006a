import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { createDatabase } from '../database.ts'
import { loginOfService, openAsOwner } from '../logins.ts'
import { until } from '../until.ts'
import { freePort } from './free-port.ts'
import { allAnswered, keepAsking } from './load.ts'
import { startServiceProcess } from './service-process.ts'
import { digestOf, fillWorld, type Known, learn, questionsOf } from './truth.ts'

/** Traces are nobody's business but the operator's: whoever asks for rows does not feel them. */
const { url } = await createDatabase(t)
const db = openAsOwner(t, url)
const DATABASE_URL = await loginOfService(t, db, url)
const questions = questionsOf(await fillWorld(db, 500)).filter(({ path }) => /limit=20$/.test(path))

t.test('Without a collector no SDK of OpenTelemetry is loaded, and nobody called', async (t) => {
  const tell = new URL('./tell-beginnings.ts', import.meta.url).href
  const start = async (settings: Record<string, string>) => {
    const own = { DATABASE_URL, NODE_OPTIONS: `--import=${tell}`, ...settings }
    const service = await startServiceProcess(t, own)
    await learn(service.url, questions)
    t.equal(await service.end('SIGTERM'), 0)
    const told = service.said().split('\n')
    const calls = told.filter((line) => line.startsWith('connects to '))
    const ours = calls.filter((line) => line.includes(new URL(url).port))
    t.ok(ours.length > 0, 'it told of its connections to the database')
    // prom-client brings its interfaces, which do nothing by themselves.
    const loaded = told.filter((line) => /^loads .*@opentelemetry.(?!api\b)/.test(line))
    return { loaded: loaded.length, others: calls.filter((line) => !ours.includes(line)) }
  }
  t.same(await start({}), { loaded: 0, others: [] })
  const OTEL_EXPORTER_OTLP_ENDPOINT = `http://127.0.0.1:${await freePort()}`
  const on = await start({ OTEL_EXPORTER_OTLP_ENDPOINT })
  t.ok(on.loaded > 0, 'which would have been told')
  t.match(on.others[0], new URL(OTEL_EXPORTER_OTLP_ENDPOINT).port)
})

const LOAD_MS = 20_000

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
  for (const { name, tookMs, said } of services) {
    const sorted = tookMs.toSorted((a, b) => a - b)
    const [median = 0, late = 0] = [0.5, 0.99].map(
      (part) => sorted[Math.floor(part * sorted.length)],
    )
    const lines = linesOf(said())
    const times = `median ${median.toFixed(1)} ms, 99th ${late.toFixed(1)} ms`
    process.stderr.write(`${name}: ${sorted.length} sent, ${times}, ${lines} lines in the log\n`)
    t.ok(lines < LOAD_MS / 1_000, 'less than one a second')
  }
  for (const { name, said, end } of traced) {
    await until(`it is told: ${name}`, () => said().includes('traces cannot be exported'))
    const start = performance.now()
    t.equal(await end('SIGTERM'), 0, 'exit code')
    t.comment(`${name}: ended within ${Math.round(performance.now() - start)} ms of SIGTERM`)
  }
})

const linesOf = (text: string) => text.split('\n').filter((line) => line !== '').length

async function faultOf(service: string, wanted: Known): Promise<string | undefined> {
  const headers = { authorization: `Bearer ${wanted.token}` }
  const answer = await fetch(service + wanted.path, { headers })
  const { digest, bytes } = await digestOf(answer.body ?? [])
  if (answer.status === 200 && digest === wanted.digest) return undefined
  return `${answer.status}, ${bytes} bytes that are not the truth`
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
