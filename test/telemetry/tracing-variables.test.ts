import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { createDatabase } from '../support/database.ts'
import { startService } from '../support/service.ts'

const { url: databaseUrl } = await createDatabase(t)

/** Trace of the client. */
const TRACE = 'a'.repeat(32)

interface Export {
  headers: IncomingHttpHeaders
  body: Buffer
}

/** Returns what the service exports of one request, until its end. */
async function exportsOf(t: Test, variables: Record<string, string>): Promise<Export[]> {
  const exports: Export[] = []
  const server = createServer(async (request, response) => {
    exports.push({ headers: request.headers, body: await buffer(request) })
    response.end('{}')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const environment = {
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    ...variables,
  }
  // OpenTelemetry reads the environment of the process.
  Object.assign(process.env, environment)
  try {
    const service = await startService(t, { databaseUrl, environment })
    const headers = { traceparent: `00-${TRACE}-b7ad6b7169203331-01` }
    t.equal((await service.get('/nowhere', { headers })).status, 404)
    // Its end exports what is left.
    await service.close()
    return exports
  } finally {
    for (const name of Object.keys(environment)) delete process.env[name]
    server.close()
    server.closeAllConnections()
  }
}

const textOf = (exports: Export[]) => exports.map(({ body }) => body.toString('latin1')).join('')

t.test('no other variable: the span has the trace of the client', async (t) => {
  t.match(textOf(await exportsOf(t, {})), TRACE)
})

const unexported: Record<string, string>[] = [
  { OTEL_SDK_DISABLED: 'true' },
  { OTEL_TRACES_EXPORTER: 'none' },
  { OTEL_TRACES_SAMPLER: 'always_off' },
  { OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0' },
]
for (const variables of unexported) {
  t.test(`${Object.values(variables).join(' ')}: no span is exported`, async (t) => {
    t.same(await exportsOf(t, variables), [])
  })
}

t.test('parentbased_always_off: the client turns on sampling', async (t) => {
  t.match(textOf(await exportsOf(t, { OTEL_TRACES_SAMPLER: 'parentbased_always_off' })), TRACE)
})

t.test('OTEL_PROPAGATORS=none: the span has a trace of its own', async (t) => {
  const text = textOf(await exportsOf(t, { OTEL_PROPAGATORS: 'none' }))
  t.match(text, 'traceId')
  t.notMatch(text, TRACE)
})

t.test('names, attributes and headers: they are in the export', async (t) => {
  const exports = await exportsOf(t, {
    OTEL_SERVICE_NAME: 'own-name',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=blue,service.name=other',
    OTEL_EXPORTER_OTLP_HEADERS: 'x-key=secret',
    OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT: '3',
  })
  t.match(textOf(exports), /"own-name"/)
  t.match(textOf(exports), /"blue"/)
  t.match(textOf(exports), /"http.request.method","value":\{"stringValue":"GET"\}/)
  t.notMatch(textOf(exports), /route_not_found/)
  t.match(exports[0]?.headers, { 'x-key': 'secret', 'content-type': 'application/json' })
})

t.test('OTEL_EXPORTER_OTLP_PROTOCOL: http/protobuf, or that of the traces', async (t) => {
  const protocols: [Record<string, string>, string][] = [
    [{ OTEL_EXPORTER_OTLP_PROTOCOL: '' }, 'application/x-protobuf'],
    [{ OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf' }, 'application/x-protobuf'],
    [{ OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/protobuf' }, 'application/x-protobuf'],
    [{}, 'application/json'],
  ]
  for (const [variables, type] of protocols) {
    const [first] = await exportsOf(t, variables)
    t.equal(first?.headers['content-type'], type, JSON.stringify(variables))
  }
})

const refused: [Record<string, string>, string][] = [
  [
    { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' },
    'OTEL_EXPORTER_OTLP_PROTOCOL: grpc is not supported. Use http/protobuf, http/json.',
  ],
  [
    { OTEL_TRACES_EXPORTER: 'zipkin' },
    'OTEL_TRACES_EXPORTER: zipkin is not supported. Use otlp, console.',
  ],
  [
    { OTEL_PROPAGATORS: 'tracecontext,b3' },
    'OTEL_PROPAGATORS: b3 is not supported. Use tracecontext, baggage.',
  ],
  [
    { OTEL_TRACES_SAMPLER: 'jaeger_remote' },
    'OTEL_TRACES_SAMPLER: jaeger_remote is not supported. Use always_on, always_off, traceidratio, ' +
      'parentbased_always_on, parentbased_always_off, parentbased_traceidratio.',
  ],
  [
    { OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '50' },
    'OTEL_TRACES_SAMPLER_ARG: 50 is not from 0 to 1.',
  ],
  [
    { OTEL_BSP_SCHEDULE_DELAY: '-1' },
    'OTEL_BSP_SCHEDULE_DELAY: -1 is negative. Use a number from 0 on.',
  ],
]
for (const [variables, message] of refused) {
  t.test(`${Object.entries(variables).join(' ')}: the start ends with a sentence`, async (t) => {
    await t.rejects(exportsOf(t, variables), { name: 'OperatorError', message })
  })
}
