import {
  type Attributes,
  context,
  DiagLogLevel,
  diag,
  logs,
  propagation,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import { NodeSDK } from '@opentelemetry/sdk-node'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { Config } from '../config.ts'
import type { RequestEnd } from '../http/request-context.ts'
import { withDeadline } from '../limits/deadline.ts'
import type { EndedRead } from '../postgres/reader.ts'

/** Time for the export of the last spans on shutdown, in ms. */
const SHUTDOWN_MS = 2_000
/** Time during which a further export failure is not logged, in ms. */
const QUIET_MS = 60_000

/** Starts OpenTelemetry. It is global to the process, so only one open app can have traces. */
export default fp(async (app: FastifyInstance, { config }: { config: Config }) => {
  startSdk(app, config.OTEL_SERVICE_NAME)
  const tracer = trace.getTracer('investment-data-query-service')
  app.onReadEnd((read) => traceRead(tracer, read))
  traceRequests(app, tracer)
})

/** The SDK reads its standard environment variables: exporter, protocol, sampler and others. */
function startSdk(app: FastifyInstance, serviceName: string): void {
  const sdk = new NodeSDK({ serviceName, metricReaders: [], logRecordProcessors: [] })
  let quietUntil = 0
  const warn = (message: string) => {
    if (performance.now() < quietUntil) return
    quietUntil = performance.now() + QUIET_MS
    app.log.warn({ message }, 'traces cannot be exported')
  }
  const ignore = () => {}
  diag.setLogger(
    { error: warn, warn, info: ignore, debug: ignore, verbose: ignore },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  )
  sdk.start()
  app.addHook('onClose', async () => {
    await withDeadline(sdk.shutdown(), SHUTDOWN_MS, () => {})
    for (const api of [trace, context, propagation, logs, diag]) api.disable()
  })
}

/** Creates server spans by the semantic conventions for HTTP, without the path: it has the connection token. */
function traceRequests(app: FastifyInstance, tracer: Tracer): void {
  app.addHook('onRequest', (request, _reply, next) => {
    // Health checks have no span.
    if (request.routeOptions.logLevel === 'silent') return next()
    const parent = propagation.extract(ROOT_CONTEXT, request.headers)
    const { id, method, routeOptions } = request
    const { url } = routeOptions
    const attributes: Attributes = {
      'http.request.method': method,
      'http.route': url,
      'investment.request_id': id,
    }
    const name = url === undefined ? method : `${method} ${url}`
    request.recorder.trace(tracer.startSpan(name, { kind: SpanKind.SERVER, attributes }, parent))
    next()
  })
  app.onRequestEnd(endSpan)
}

function endSpan({ request, reply, aborted }: RequestEnd): void {
  const { span, appId, items, errorCode } = request.recorder.facts
  const status = aborted ? undefined : reply.statusCode
  const failure = aborted ? 'aborted' : errorCode
  const failed = status === undefined || status >= 500
  span?.setAttributes({
    'http.response.status_code': status,
    'error.type': failed ? failure : undefined,
    'investment.app': appId,
    'investment.items': items,
  })
  if (failed) span?.setStatus({ code: SpanStatusCode.ERROR })
  span?.end()
}

/** Creates a client span with the name of the statement and without its parameters. */
function traceRead(tracer: Tracer, { facts, statement, durationMs, error }: EndedRead): void {
  if (facts.span === undefined) return
  const name = `SELECT ${statement}`
  const attributes = {
    'db.system.name': 'postgresql',
    'db.operation.name': 'SELECT',
    'db.query.summary': name,
  }
  const options = { kind: SpanKind.CLIENT, attributes, startTime: Date.now() - durationMs }
  const span = tracer.startSpan(name, options, trace.setSpan(ROOT_CONTEXT, facts.span))
  if (error !== undefined) {
    span.setAttribute('error.type', error instanceof Error ? error.name : 'unknown')
    span.setStatus({ code: SpanStatusCode.ERROR })
  }
  span.end()
}
