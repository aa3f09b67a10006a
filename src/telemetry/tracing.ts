import {
  type Attributes,
  DiagLogLevel,
  diag,
  propagation,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { Config } from '../config.ts'
import type { RequestEnd } from '../http/request-context.ts'
import { withDeadline } from '../limits/deadline.ts'
import type { ReadEvent } from '../postgres/reader.ts'
import { disableTraces, startTraces } from './open-telemetry.ts'

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

/** Starts the traces, and logs what their exporter cannot do. */
function startSdk(app: FastifyInstance, serviceName: string): void {
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
  const shutDown = startTraces(serviceName)
  app.addHook('onClose', async () => {
    // A collector that is down fails the last export, and not the shutdown. An error of several addresses has a code only.
    const exported = shutDown().catch(({ message, code }) => warn(message || code))
    await withDeadline(exported, SHUTDOWN_MS, () => {})
    disableTraces()
    diag.disable()
  })
}

/** Creates server spans by the semantic conventions for HTTP, without the path: it has the connection token. */
function traceRequests(app: FastifyInstance, tracer: Tracer): void {
  app.addHook('onRequest', (request, _reply, next) => {
    // Health checks have no span.
    if (request.routeOptions.config.isProbe) return next()
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
function traceRead(tracer: Tracer, { facts, statement, durationMs, error }: ReadEvent): void {
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
