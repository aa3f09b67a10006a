import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { Counter, Gauge, type Registry } from 'prom-client'
import type { RequestEnd } from '../http/request-log.ts'
import { type Durations, noDurations, record, registerHistogram } from './histogram.ts'

interface Series {
  labels: { route: string; method: string; status: string }
  requests: number
  items: number
  bytes: number
  /** Those of all statuses of one class. */
  durations: Durations
}

/**
 * Rate, errors and durations of the requests, by route, method and status; and what was sent. The
 * labels come from short lists: routes by their pattern, and nothing that a client can make up.
 */
export function httpMetrics(app: FastifyInstance, registry: Registry): void {
  const all = new Map<string, Series>()
  const classes = new Map<string, { labels: Series['labels']; durations: Durations }>()
  const bytesSent = sentSinceLastTime()
  const { problems, unserved } = refusalCounters(registry)
  // From zero on, so that the first failure of a route is an increase, too.
  app.addHook('onRoute', ({ url: route, method }) => {
    if (method !== 'GET') return
    problems.inc({ route, code: 'internal_error' }, 0)
    for (const reason of ['database', 'overload']) unserved.inc({ route, reason }, 0)
  })

  app.onRequestEnd((end: RequestEnd) => {
    const { request, reply } = end
    const { route, method, status } = labelsOf(end)
    const key = `${route} ${method} ${status}`
    const series = all.get(key) ?? add(key, { route, method, status })
    series.requests += 1
    series.items += request.items ?? 0
    series.bytes += bytesSent(request.raw.socket)
    record(series.durations, reply.elapsedTime / 1000)
    if (request.errorCode) problems.inc({ route, code: request.errorCode })
    if (request.unavailableReason) unserved.inc({ route, reason: request.unavailableReason })
  })

  function add(key: string, labels: Series['labels']): Series {
    const status = labels.status === 'aborted' ? 'aborted' : `${labels.status[0]}xx`
    const classKey = `${labels.route} ${labels.method} ${status}`
    const ofClass = classes.get(classKey) ?? {
      labels: { ...labels, status },
      durations: noDurations(),
    }
    classes.set(classKey, ofClass)
    const series = { labels, requests: 0, items: 0, bytes: 0, durations: ofClass.durations }
    all.set(key, series)
    return series
  }

  registerHistogram(
    registry,
    { name: 'http_request_duration_seconds', help: 'Durations of requests, by class of status.' },
    () => [...classes.values()],
  )
  registerCounters(registry, all)
  new Gauge({
    name: 'http_requests_in_flight',
    help: 'Requests that have come and are not over.',
    registers: [registry],
    collect() {
      this.set(app.inFlight.requests)
    },
  })
}

function labelsOf({ request, reply, aborted }: RequestEnd): Series['labels'] {
  return {
    route: request.routeOptions.url ?? 'unknown',
    method: METHODS.has(request.method) ? request.method : 'other',
    status: aborted ? 'aborted' : String(reply.statusCode),
  }
}

const METHODS = new Set(['GET', 'HEAD'])

function registerCounters(registry: Registry, all: Map<string, Series>): void {
  const registers = [registry]
  new Counter({
    name: 'http_requests_total',
    help: 'Requests that are over, by status; `aborted` where the client went away first.',
    labelNames: ['route', 'method', 'status'],
    registers,
    collect() {
      this.reset()
      for (const { labels, requests } of all.values()) this.inc(labels, requests)
    },
  })
  for (const what of ['items', 'bytes'] as const) {
    new Counter({
      name: `http_response_${what}_total`,
      help: { items: 'Rows that were sent.', bytes: 'Bytes that were sent, headers included.' }[
        what
      ],
      labelNames: ['route'],
      registers,
      collect() {
        this.reset()
        for (const series of all.values()) this.inc({ route: series.labels.route }, series[what])
      },
    })
  }
}

/** Refusals are few, or quick: here, prom-client's own counting will do. */
function refusalCounters(registry: Registry) {
  const registers = [registry]
  return {
    problems: new Counter({
      name: 'http_problems_total',
      help: 'Requests that were refused, by the code in the answer.',
      labelNames: ['route', 'code'],
      registers,
    }),
    unserved: new Counter({
      name: 'http_unserved_requests_total',
      help: 'Requests that were answered 503, by reason.',
      labelNames: ['route', 'reason'],
      registers,
    }),
  }
}

const counted = Symbol('bytes counted')

/** What a connection has sent since it was asked last: its answers follow one another. */
function sentSinceLastTime() {
  return (socket: Socket & { [counted]?: number }): number => {
    const before = socket[counted] ?? 0
    socket[counted] = socket.bytesWritten
    return socket.bytesWritten - before
  }
}
