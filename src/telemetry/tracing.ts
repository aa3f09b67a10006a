import { setTimeout as sleep } from 'node:timers/promises'
import {
  type Attributes,
  context,
  DiagLogLevel,
  diag,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api'
import { NodeSDK } from '@opentelemetry/sdk-node'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { FifoMap } from 'toad-cache'
import type { Config } from '../config.ts'
import type { RequestEnd } from '../http/request-log.ts'
import type { Watch } from '../postgres/database.ts'

/** How long the last spans have to leave when the service closes, in ms. */
const LAST_CALL = 2_000

/** How often the same failure is told, in ms: with many requests, spans leave several times a second. */
const SILENCE = 60_000

/** How many failures are kept in mind; the oldest ones are forgotten. */
const MOST_MESSAGES = 100

/**
 * Starts OpenTelemetry as its standard environment variables say: where to, in which form, how many of
 * the traces. Metrics and logs have their own ways out of this service.
 */
export function startSdk(app: FastifyInstance, serviceName: string): void {
  const sdk = new NodeSDK({ serviceName, metricReaders: [], logRecordProcessors: [] })
  const silentUntil = new FifoMap<number>(MOST_MESSAGES)
  const tell = (message: string) => {
    const now = performance.now()
    if (now < (silentUntil.get(message) ?? 0)) return
    silentUntil.set(message, now + SILENCE)
    app.log.warn({ message }, 'traces cannot be exported')
  }
  const silent = () => {}
  diag.setLogger(
    { error: tell, warn: tell, info: silent, debug: silent, verbose: silent },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  )
  sdk.start()
  app.addHook('onClose', async () => {
    await Promise.race([sdk.shutdown(), sleep(LAST_CALL, undefined, { ref: false })])
  })
}

const tracer = trace.getTracer('investment-data-query-service')
const spans = new WeakMap<FastifyRequest, Span>()

/**
 * One span for each request, as the semantic conventions for HTTP servers have it, but for the address:
 * that holds the connection's token, so that the route's pattern stands for it. A caller's own trace
 * (W3C traceparent) is continued.
 */
export const tracing = fp(async (app: FastifyInstance, { config }: { config: Config }) => {
  startSdk(app, config.OTEL_SERVICE_NAME)
  app.addHook('onRequest', (request, _reply, next) => {
    // Supervisors ask all the time, and what they are told is no work.
    if (request.routeOptions.logLevel === 'silent') return next()
    const caller = propagation.extract(ROOT_CONTEXT, request.headers)
    const span = tracer.startSpan(
      nameOf(request),
      { kind: SpanKind.SERVER, attributes: attributesOf(request) },
      caller,
    )
    spans.set(request, span)
    request.traceId = span.spanContext().traceId
    context.with(trace.setSpan(caller, span), next)
  })
  app.onRequestEnd(endSpan)
})

function endSpan({ request, reply, aborted }: RequestEnd): void {
  const span = spans.get(request)
  if (span === undefined) return
  const { statusCode } = reply
  if (aborted) span.setAttribute('error.type', 'aborted')
  else span.setAttribute('http.response.status_code', statusCode)
  if (statusCode >= 500) span.setAttribute('error.type', request.errorCode ?? String(statusCode))
  if (statusCode >= 500 || aborted) span.setStatus({ code: SpanStatusCode.ERROR })
  if (request.appId !== undefined) span.setAttribute('investment.app', request.appId)
  if (request.items !== undefined) span.setAttribute('investment.items', request.items)
  span.end()
}

function nameOf({ method, routeOptions }: FastifyRequest): string {
  return routeOptions.url === undefined ? method : `${method} ${routeOptions.url}`
}

function attributesOf(request: FastifyRequest): Attributes {
  const { url } = request.routeOptions
  return {
    'http.request.method': request.method,
    ...(url === undefined ? {} : { 'http.route': url }),
    'url.scheme': 'http',
    'network.protocol.version': request.raw.httpVersion,
    'investment.request_id': request.id,
  }
}

/** A span for each read of the database: the name of its statement, and never a parameter. */
export const traceReads: Watch = (statement, run) =>
  tracer.startActiveSpan(
    `SELECT ${statement}`,
    {
      kind: SpanKind.CLIENT,
      attributes: {
        'db.system.name': 'postgresql',
        'db.operation.name': 'SELECT',
        'db.query.summary': `SELECT ${statement}`,
      },
    },
    async (span) => {
      try {
        return await run()
      } catch (error) {
        span.setAttribute('error.type', error instanceof Error ? error.name : 'unknown')
        span.setStatus({ code: SpanStatusCode.ERROR })
        throw error
      } finally {
        span.end()
      }
    },
  )
