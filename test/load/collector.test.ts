import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import t, { type Test } from 'tap'
import { freePort } from '../../tools/embedded-postgres/free-port.ts'
import {
  addSampleData,
  check,
  type GoldenResponse,
  recordOk,
  requestsOf,
} from '../support/golden-responses.ts'
import { assertAllAnswered, startLoad } from '../support/load.ts'
import { openTestDatabase } from '../support/new-database.ts'
import { type ServiceProcess, startServiceProcess } from '../support/processes/service-process.ts'
import { until } from '../support/until.ts'

const { url, db, login: DATABASE_URL } = await openTestDatabase(t)
const requests = requestsOf(await addSampleData(db, 500)).filter(({ path }) =>
  path.endsWith('limit=20'),
)
const printImports = new URL(
  '../support/processes/print-imports-and-connections.ts',
  import.meta.url,
)

t.test('Without a collector: the service neither loads the SDK nor connects to one', async (t) => {
  const start = async (settings: Record<string, string>) => {
    const NODE_OPTIONS = `--import=${printImports.href}`
    const environment = { DATABASE_URL, NODE_OPTIONS, SHUTDOWN_DELAY_MS: '0', ...settings }
    const service = await startServiceProcess(t, environment)
    await recordOk(service.url, requests)
    t.equal(await service.end('SIGTERM'), 0)
    const lines = service.output().split('\n')
    const ports = lines.filter((line) => line.startsWith('connects to ')).map(portOf)
    const databasePort = Number(new URL(url).port)
    t.ok(ports.includes(databasePort), 'the output shows the connections to PostgreSQL')
    // prom-client imports the interfaces of OpenTelemetry, which do nothing by themselves.
    const imports = lines.filter((line) => /^imports .*@opentelemetry.(?!api\b)/.test(line))
    const others = new Set(ports.filter((port) => port !== databasePort))
    return { imports: imports.length, otherPorts: [...others] }
  }
  t.same(await start({}), { imports: 0, otherPorts: [] })
  const port = await freePort()
  const traced = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}` })
  t.ok(traced.imports > 0, 'the output would show the SDK')
  t.same(traced.otherPorts, [port])
})

/** Port of a printed connection, for both signatures of `connect`. */
function portOf(line: string): number {
  const [target] = JSON.parse(line.slice(line.indexOf('['))).flat()
  return Number(target.port ?? target)
}

/** Service with a failing collector, and the number of responses after its first failed export. */
interface TracedService extends ServiceProcess {
  failed(): boolean
  answeredAfterFailure: number
  durationsMs: number[]
}

t.test('200: the collector is down, hangs or rejects spans, and no request fails', async (t) => {
  const hanging = await startCollector(t, () => {})
  const rejecting = await startCollector(t, (request, response) => {
    request.resume().on('end', () => response.writeHead(401).end('unauthorized'))
  })
  const down: Collector = { url: `http://127.0.0.1:${await freePort()}`, exports: () => 0 }
  const plain = await startTraced(t)
  const traced = {
    down: await startTraced(t, down),
    hanging: await startTraced(t, hanging),
    rejecting: await startTraced(t, rejecting),
  }
  const services = [plain, ...Object.values(traced)]
  const golden = await recordOk(plain.url, requests)
  let turn = 0
  const stop = startLoad(t, { clients: services.length }, async (client) => {
    turn += 1
    const service = services[client] as TracedService
    const start = performance.now()
    const failed = service.failed()
    const result = await check(service.url, golden[turn % golden.length] as GoldenResponse)
    service.durationsMs.push(performance.now() - start)
    if (failed && result === 'ok') service.answeredAfterFailure += 1
    return result
  })
  for (const [name, service] of Object.entries(traced)) {
    const responds = () => service.answeredAfterFailure >= 50 && logOf(service).length > 0
    await until(`collector ${name}: a log line, and responses after it failed`, responds, 120_000)
  }
  assertAllAnswered(t, await stop())
  t.equal(plain.output(), '')
  const medians = { without: plain, ...traced }
  for (const [name, { durationsMs }] of Object.entries(medians))
    t.comment(`collector ${name}: ${durationsMs.length} sent, median ${medianOf(durationsMs)} ms`)

  for (const [name, service] of Object.entries(traced)) {
    t.equal(await service.end('SIGTERM'), 0, `collector ${name}: exit code`)
    checkLog(t, logOf(service))
  }
})

/** Asserts that the log reports each failure of the collector at most once a minute. */
function checkLog(t: Test, lines: LogLine[]): void {
  t.same([...new Set(lines.map(({ msg }) => msg))], ['traces cannot be exported'])
  for (const [index, { message, time }] of lines.entries()) {
    const next = lines.slice(index + 1).find((later) => later.message === message)
    // The service measures the minute with another clock than that of the log.
    if (next) t.ok(next.time - time > 59_000, `${message}: again after ${next.time - time} ms`)
  }
}

interface LogLine {
  msg: string
  message: string
  /** Unix time in ms. */
  time: number
}

function logOf({ output }: ServiceProcess): LogLine[] {
  const lines = output().split('\n')
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line))
}

function medianOf(times: number[]): string {
  return (times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? 0).toFixed(1)
}

async function startTraced(t: Test, collector?: Collector): Promise<TracedService> {
  const service = await startServiceProcess(t, {
    DATABASE_URL,
    SHUTDOWN_DELAY_MS: '0',
    // Exports as often as a much higher request rate would.
    ...(collector && {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_BSP_SCHEDULE_DELAY: '100',
      // The hanging collector fails after this time, and after 10 s without it.
      OTEL_EXPORTER_OTLP_TIMEOUT: '2000',
    }),
  })
  const failed = () =>
    collector !== undefined && (collector.exports() > 0 || service.output() !== '')
  return { ...service, failed, answeredAfterFailure: 0, durationsMs: [] }
}

interface Collector {
  url: string
  /** Number of export requests that it received. */
  exports(): number
}

/** Starts a collector; the end of the test closes its open connections. */
async function startCollector(t: Test, handle: RequestListener): Promise<Collector> {
  let exports = 0
  const sockets = new Set<Socket>()
  const server = createServer((request, response) => {
    exports += 1
    handle(request, response)
  })
  server.on('connection', (socket) => sockets.add(socket))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, exports: () => exports }
}
