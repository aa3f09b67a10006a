import { CONNECTIONS, LARGE, ROWS_EACH } from './data-set.ts'
import { type WireRequest, wireRequest } from './load-generator.ts'
import { dayBefore } from './rows.ts'
import type { Ask, Target } from './targets.ts'

export interface Load {
  key: string
  title: string
  /** Requests that are under way at any time. */
  clients: number
  /** What to ask of a target, or undefined where it has no such thing. */
  requests(target: Target): WireRequest[] | undefined | Promise<WireRequest[] | undefined>
  /** Where the load is a list: what is asked, so that the answers can be compared. */
  asks?: Ask[]
}

const CLIENTS = 16

/** The day from which 13 rows of each of the small connections are. */
export const SYNC_FROM = dayBefore(15)

const small = Array.from({ length: CONNECTIONS }, (_, index) => index + 1)
const FULL = { limit: 1000, page: 0 }

/** The loads of the bench, by the letters under which docs/performance.md lists them. */
export function loads(largeRows: number): Load[] {
  const last = largeRows / FULL.limit - 1
  const inLarge = (page: number) => [{ connection: LARGE, limit: FULL.limit, page }]
  const size = largeRows.toLocaleString('en')
  return [
    fullPages(small, ROWS_EACH),
    dailySyncs(small, ROWS_EACH),
    pages('c first', `page 0 of ${size} rows`, inLarge(0)),
    pages('c middle', `the middle page of ${size} rows`, inLarge(Math.floor(last / 2))),
    pages('c last', `the last page of ${size} rows`, inLarge(last)),
    others('d', 'the transfer orders of a connection', orderRequests),
    others('e', 'the daily sync again, with If-None-Match', unmodifiedRequests),
    others('f 401', 'a token that nobody has', strangerRequests),
    others('f 404', 'a connection that the app does not have', missingRequests),
    // Few, since large requests have one in ten connections, and the others wait.
    pages('g', 'limit=10000', tenThousands(largeRows), 4),
  ]
}

/** @param rows that each connection has */
export function fullPages(connections: number[], rows: number): Pages {
  const asks = connections.map((connection) => ({ ...FULL, connection }))
  return pages('a', `a full page: 1,000 of ${rows.toLocaleString('en')} rows`, asks)
}

/** @param rows that each connection has */
export function dailySyncs(connections: number[], rows: number): Pages {
  const asks = connections.map((connection) => ({ ...FULL, from: SYNC_FROM, connection }))
  return pages('b', `the daily sync: 13 of ${rows.toLocaleString('en')} rows`, asks)
}

const tenThousands = (largeRows: number) =>
  Array.from({ length: Math.min(10, largeRows / 10_000) }, (_, page) => ({
    connection: LARGE,
    limit: 10_000,
    page,
  }))

interface Pages extends Load {
  asks: Ask[]
  requests(target: Target): WireRequest[]
}

function pages(key: string, title: string, asks: Ask[], clients = CLIENTS): Pages {
  const requests = (target: Target) =>
    asks.map((ask) => wireRequest(target.page(ask), target.headers(ask.connection)))
  return { key, title, clients, asks, requests }
}

function others(key: string, title: string, requests: Load['requests']): Load {
  return { key, title, clients: CLIENTS, requests }
}

function orderRequests(target: Target): WireRequest[] {
  return small.map((id) => wireRequest(target.orders(id), target.headers(id)))
}

/** Only where the answer has an ETag, and a request that names it is told that nothing changed. */
async function unmodifiedRequests(target: Target): Promise<WireRequest[] | undefined> {
  const requests: WireRequest[] = []
  for (const connection of small) {
    const path = target.page({ ...FULL, connection, from: SYNC_FROM })
    const headers = target.headers(connection)
    const answer = await fetch(`http://127.0.0.1:${target.server.port}${path}`, { headers })
    await answer.bytes()
    const etag = answer.headers.get('etag')
    if (etag === null) return undefined
    requests.push(wireRequest(path, { ...headers, 'if-none-match': etag }, 304))
  }
  return requests
}

// The peers let in whoever comes, and take any connection for an empty one.
const asksWhoCalls = (target: Target) => target.headers(1).authorization !== undefined

function strangerRequests(target: Target): WireRequest[] | undefined {
  if (!asksWhoCalls(target)) return undefined
  const headers = { authorization: 'Bearer nobody' }
  return small.map((id) => wireRequest(target.page({ ...FULL, connection: id }), headers, 401))
}

function missingRequests(target: Target): WireRequest[] | undefined {
  if (!asksWhoCalls(target)) return undefined
  return small.map((id) => {
    const path = target.page({ ...FULL, connection: id + LARGE })
    return wireRequest(path, target.headers(id), 404)
  })
}
