import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { sql } from 'kysely'
import t, { type Test } from 'tap'
import { withBlockedStatements } from '../support/blocked-statements.ts'
import { addCaller, addPortfolioTransactions } from '../support/rows.ts'
import { startService } from '../support/service.ts'
import { until } from '../support/until.ts'

const LIST = '/api/v1/queries/connections/:token/portfolios/transactions'

/** A span of OTLP in JSON. */
interface Span {
  traceId: string
  spanId: string
  parentSpanId?: string
  name: string
  kind: number
  attributes: { key: string; value: Record<string, unknown> }[]
  status: { code?: number }
}

/** A collector for OTLP over HTTP in JSON. */
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
  /** Waits for `count` spans of a trace. */
  const trace = async (traceId: string, count: number) => {
    const found = () => spans.filter((span) => span.traceId === traceId)
    await until(`${count} spans`, () => found().length >= count)
    return found()
  }
  return { endpoint: `http://127.0.0.1:${port}`, spans, bodies, trace }
}

function attributes(span: Span | undefined): Record<string, unknown> {
  const entries = span?.attributes.map(({ key, value }) => [key, Object.values(value)[0]]) ?? []
  return Object.fromEntries(entries)
}

const collector = await startCollector(t)
// OpenTelemetry's SDK reads the environment of the process.
const variables = {
  OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint,
  OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
  OTEL_BSP_SCHEDULE_DELAY: '50',
}
Object.assign(process.env, variables)
t.teardown(() => {
  for (const name of Object.keys(variables)) delete process.env[name]
})
const service = await startService(t, {
  environment: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint },
})
const { appId, token, connection } = await addCaller(service.db)
await addPortfolioTransactions(service.db, connection, {}, {})

let serial = 0
/** Sends a request that belongs to a trace of the client. */
async function requestTraced(path: string, bearer = token) {
  serial += 1
  const traceId = serial.toString(16).padStart(32, 'a')
  const parent = 'b7ad6b7169203331'
  const headers = { traceparent: `00-${traceId}-${parent}-01` }
  return { traceId, parent, response: await service.get(path, { token: bearer, headers }) }
}

t.test('request: a server span that continues the trace of the client', async (t) => {
  const { traceId, parent, response } = await requestTraced(`${connection.portfolio}?limit=1`)
  t.equal(response.status, 200)
  const spans = await collector.trace(traceId, 2)
  const server = spans.find(({ kind }) => kind === 2)
  t.match(server, { name: `GET ${LIST}`, parentSpanId: parent })
  t.match(attributes(server), {
    'http.request.method': 'GET',
    'http.route': LIST,
    'http.response.status_code': 200,
    'investment.app': appId,
    'investment.items': 1,
    'investment.request_id': response.headers.get('x-request-id'),
  })
  t.ok(
    service.log.some((line) => line.includes(traceId)),
    'the log line has the trace id',
  )
})

t.test('database read: a client span within the span of its request', async (t) => {
  const { traceId } = await requestTraced(connection.portfolio)
  const spans = await collector.trace(traceId, 2)
  const server = spans.find(({ kind }) => kind === 2)
  const read = spans.find(({ kind }) => kind === 3)
  t.match(read, {
    name: 'SELECT portfolio_transaction first page by tokenHash',
    parentSpanId: server?.spanId,
  })
  t.match(attributes(read), {
    'db.system.name': 'postgresql',
    'db.operation.name': 'SELECT',
    'db.query.summary': 'SELECT portfolio_transaction first page by tokenHash',
  })
})

t.test('concurrent requests: each read is within the span of its request', async (t) => {
  const requests = await Promise.all(
    Array.from({ length: 20 }, () => requestTraced(connection.account)),
  )
  for (const { traceId } of requests) {
    const spans = await collector.trace(traceId, 2)
    const server = spans.find(({ kind }) => kind === 2)
    t.equal(spans.find(({ kind }) => kind === 3)?.parentSpanId, server?.spanId)
    t.equal(spans.length, 2)
  }
})

t.test('401 and 404: not marked as failed', async (t) => {
  const rejected = await requestTraced(connection.portfolio, 'unknown')
  const [server] = (await collector.trace(rejected.traceId, 2)).filter(({ kind }) => kind === 2)
  t.equal(attributes(server)['http.response.status_code'], 401)
  t.notOk(server?.status.code)
  const nowhere = await requestTraced('/nowhere/secret')
  t.equal((await collector.trace(nowhere.traceId, 1))[0]?.name, 'GET')
})

t.test('503 and a client that is gone: both spans are marked as failed', async (t) => {
  await sql`create function fail() returns boolean language plpgsql as $$ begin
    raise 'disk' using errcode = '58030'; end $$`.execute(service.db)
  await sql`create policy fails on app_token as restrictive for select using (fail())`.execute(
    service.db,
  )
  const failed = await requestTraced(connection.orders)
  t.equal(failed.response.status, 503)
  const spans = await collector.trace(failed.traceId, 2)
  const errorOf = (span: Span | undefined) => [attributes(span)['error.type'], span?.status.code]
  const [server, read] = [2, 3].map((wanted) => spans.find(({ kind }) => kind === wanted))
  t.same(errorOf(server), ['service_unavailable', 2])
  t.equal(attributes(server)['http.response.status_code'], 503)
  t.same(errorOf(read), ['Unavailable', 2])

  await sql`drop function fail cascade`.execute(service.db)
  const traceId = 'd'.repeat(32)
  const headers = {
    authorization: `Bearer ${token}`,
    traceparent: `00-${traceId}-b7ad6b7169203331-01`,
  }
  const leave = new AbortController()
  const { signal } = leave
  const blocked = async () => {
    const response = fetch(service.url + connection.orders, { headers, signal })
    await until('the read is in flight', () => service.database.state().primary.inUse > 0)
    leave.abort()
    await t.rejects(response)
  }
  await withBlockedStatements(t, service.db, blocked, 'app_token')
  const [aborted] = (await collector.trace(traceId, 2)).filter(({ kind }) => kind === 2)
  t.same(errorOf(aborted), ['aborted', 2])
  t.equal(attributes(aborted)['http.response.status_code'], undefined)
})

t.test('exported spans: no token, parameter or path', async (t) => {
  await requestTraced(`${connection.orders}?from=2021-03-04`)
  const health = await requestTraced('/health/live')
  const { traceId } = await requestTraced(connection.orders)
  await collector.trace(traceId, 2)
  t.ok(collector.bodies.every((body) => body.startsWith('POST /v1/traces\n')))
  for (const secret of [token, connection.token, '2021-03-04', 'limit=1', '/nowhere']) {
    t.notOk(collector.bodies.some((body) => body.includes(secret)))
  }
  t.notOk(
    collector.bodies.some((body) => body.includes(health.traceId)),
    'no span of a health check',
  )
  t.match(collector.bodies[0], /"investment-data-query-service"/, 'the name of the service')
})

t.test(
  'second app in the same process, after the first was closed: exports its spans',
  async (t) => {
    await service.close()
    const second = await startService(t, {
      environment: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint },
    })
    const traceId = 'c'.repeat(32)
    const headers = { traceparent: `00-${traceId}-b7ad6b7169203331-01` }
    t.equal((await second.get('/nowhere', { headers })).status, 404)
    t.equal((await collector.trace(traceId, 1)).length, 1)
    t.notMatch(second.log.join(''), /cannot be exported/)
  },
)
