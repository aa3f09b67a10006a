import type { FastifyInstance } from 'fastify'
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'

/** In seconds. A daily sync takes a few milliseconds, a large page a few hundred. */
export const DURATION_BUCKETS = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
]

/** Registers metrics of requests. No label has a value that a client chose. */
export function httpMetrics(
  app: FastifyInstance,
  registry: Registry,
  droppedLogLines: () => number,
): void {
  const counter = (name: string, help: string, ...labelNames: string[]) =>
    new Counter({ name, help, labelNames: ['route', ...labelNames], registers: [registry] })
  const requests = counter(
    'http_requests_total',
    'Completed requests. route is a pattern or unknown. method is GET, HEAD or other. status is aborted if the client disconnected.',
    'method',
    'status',
  )
  const durations = new Histogram({
    name: 'http_request_duration_seconds',
    help: 'Durations of requests, by status class (2xx, …).',
    labelNames: ['route', 'method', 'status'],
    buckets: DURATION_BUCKETS,
    registers: [registry],
  })
  const items = counter('http_response_items_total', 'Rows sent, by route.')
  const bytes = counter(
    'http_response_bytes_total',
    'Bytes sent, after compression, including headers.',
  )
  const errors = counter('http_errors_total', 'Requests that ended with an error, by code.', 'code')
  const unavailable = counter(
    'http_unavailable_total',
    'Responses with 503, except of health checks. reason is database, overload (load shedding) or identity_provider.',
    'reason',
  )

  // Starts the series at 0, so that the first error of a route is an increase.
  app.addHook('onRoute', ({ url: route, method }) => {
    if (method !== 'GET') return
    errors.inc({ route, code: 'internal_error' }, 0)
    for (const reason of ['database', 'overload']) unavailable.inc({ route, reason }, 0)
  })
  app.onRequestEnd(({ request, reply, aborted, durationMs, bytes: sent }) => {
    const route = request.routeOptions.url ?? 'unknown'
    const method = ['GET', 'HEAD'].includes(request.method) ? request.method : 'other'
    const status = aborted ? 'aborted' : String(reply.statusCode)
    const statusClass = aborted ? 'aborted' : `${status[0]}xx`
    requests.inc({ route, method, status })
    durations.observe({ route, method, status: statusClass }, durationMs / 1000)
    bytes.inc({ route }, sent)
    const { facts } = request.recorder
    if (facts.items) items.inc({ route }, facts.items)
    if (facts.errorCode) errors.inc({ route, code: facts.errorCode })
    if (facts.unavailableReason) unavailable.inc({ route, reason: facts.unavailableReason })
  })
  new Gauge({
    name: 'http_requests_in_flight',
    help: 'Requests that have not ended.',
    registers: [registry],
    collect() {
      this.set(app.state.open.size)
    },
  })
  new Counter({
    name: 'log_lines_dropped_total',
    help: 'Log lines that could not be written.',
    registers: [registry],
    collect() {
      this.reset()
      this.inc(droppedLogLines())
    },
  })
}
