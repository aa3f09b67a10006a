import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { addCaller, addPortfolioTransactions } from '../support/rows.ts'
import { startService } from '../support/service.ts'

const LIST = '/api/v1/queries/connections/:token/portfolios/transactions'

/** A span as OTLP has it in JSON. */
interface Span {
  traceId: string
  spanId: string
  parentSpanId?: string
  name: string
  kind: number
  attributes: { key: string; value: Record<string, unknown> }[]
  status: { code?: number }
}

/** A collector on a port of its own, which takes traces as JSON over HTTP. */
async function startCollector(t: Test) {
  const spans: Span[] = []
  const bodies: string[] = []
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const body = Buffer.concat(chunks).toString()
    bodies.push(`${request.method} ${request.url}\n${body}`)
    for (const { scopeSpans } of JSON.parse(body).resourceSpans) {
      for (const scope of scopeSpans) spans.push(...scope.spans)
    }
    response.setHeader('content-type', 'application/json').end('{}')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  /** The spans of a trace, once there are so many. */
  const trace = async (traceId: string, count: number) => {
    for (;;) {
      const found = spans.filter((span) => span.traceId === traceId)
      if (found.length >= count) return found
      await sleep(10)
    }
  }
  return { endpoint: `http://127.0.0.1:${port}`, spans, bodies, trace }
}

function attributes(span: Span | undefined): Record<string, unknown> {
  const entries = span?.attributes.map(({ key, value }) => [key, Object.values(value)[0]]) ?? []
  return Object.fromEntries(entries)
}

const collector = await startCollector(t)
// OpenTelemetry reads the environment of the process, as it does where the service runs.
Object.assign(process.env, {
  OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint,
  OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
  OTEL_BSP_SCHEDULE_DELAY: '50',
})
const service = await startService(t, {
  environment: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint },
})
const { appId, token, connection } = await addCaller(service.db)
await addPortfolioTransactions(service.db, connection, {}, {})

let serial = 0
/** Asks as a part of a trace of the caller's. */
async function askTraced(path: string, bearer = token) {
  serial += 1
  const traceId = serial.toString(16).padStart(32, 'a')
  const parent = 'b7ad6b7169203331'
  const headers = { traceparent: `00-${traceId}-${parent}-01` }
  return { traceId, parent, answer: await service.get(path, { token: bearer, headers }) }
}

t.test('A request is a span that continues the trace of its caller', async (t) => {
  const { traceId, parent, answer } = await askTraced(`${connection.portfolio}?limit=1`)
  t.equal(answer.status, 200)
  const spans = await collector.trace(traceId, 2)
  const server = spans.find(({ kind }) => kind === 2)
  t.match(server, { name: `GET ${LIST}`, parentSpanId: parent })
  t.match(attributes(server), {
    'http.request.method': 'GET',
    'http.route': LIST,
    'http.response.status_code': 200,
    'investment.app': appId,
    'investment.items': 1,
    'investment.request_id': answer.headers.get('x-request-id'),
  })
  t.ok(
    service.log.some((line) => line.includes(traceId)),
    'and the log line names the trace',
  )
})

t.test('Its read of the database is a span within it', async (t) => {
  const { traceId } = await askTraced(connection.portfolio)
  const spans = await collector.trace(traceId, 2)
  const server = spans.find(({ kind }) => kind === 2)
  const read = spans.find(({ kind }) => kind === 3)
  t.match(read, {
    name: 'SELECT portfolio_transaction first page by tokenHash',
    parentSpanId: server?.spanId,
  })
  t.match(attributes(read), { 'db.system.name': 'postgresql', 'db.operation.name': 'SELECT' })
})

t.test('Of many requests at once, each read is within its own', async (t) => {
  const asked = await Promise.all(Array.from({ length: 20 }, () => askTraced(connection.account)))
  for (const { traceId } of asked) {
    const spans = await collector.trace(traceId, 2)
    const server = spans.find(({ kind }) => kind === 2)
    t.equal(spans.find(({ kind }) => kind === 3)?.parentSpanId, server?.spanId)
    t.equal(spans.length, 2)
  }
})

t.test('What fails is marked, and a refusal is no failure', async (t) => {
  const refused = await askTraced(connection.portfolio, 'unknown')
  const [server] = (await collector.trace(refused.traceId, 2)).filter(({ kind }) => kind === 2)
  t.equal(attributes(server)['http.response.status_code'], 401)
  t.notOk(server?.status.code)
  const nowhere = await askTraced('/nowhere/secret')
  t.equal((await collector.trace(nowhere.traceId, 1))[0]?.name, 'GET')
})

t.test('Nothing that leaves holds a token, a parameter or an address', async (t) => {
  await askTraced(`${connection.orders}?from=2021-03-04`)
  const health = await askTraced('/health/live')
  const { traceId } = await askTraced(connection.orders)
  await collector.trace(traceId, 2)
  t.ok(collector.bodies.every((body) => body.startsWith('POST /v1/traces\n')))
  for (const secret of [token, connection.token, '2021-03-04', 'limit=1', '/nowhere']) {
    t.notOk(collector.bodies.some((body) => body.includes(secret)))
  }
  t.notOk(
    collector.bodies.some((body) => body.includes(health.traceId)),
    'nor health checks',
  )
  t.match(collector.bodies[0], /"investment-data-query-service"/, 'the service has a name')
})
