import { CONNECTIONS, LARGE, ROWS_EACH } from '../data/data-set.ts'
import { dayBefore } from '../data/rows.ts'
import { addressOf, type PageQuery, type Target } from '../servers/targets.ts'
import { type WireRequest, wireRequest } from './load-generator.ts'

export interface Load {
  key: string
  title: string
  /** Requests in flight at any time. */
  clients: number
  /** Other processes that always want a processor while the load runs. */
  busyLoops?: number
  /** Requests to a target; undefined if it does not have the feature. */
  requests(target: Target): WireRequest[] | undefined | Promise<WireRequest[] | undefined>
  /** Queries of a list, with which the responses can be compared. */
  queries?: PageQuery[]
}

const CLIENTS = 16

/** Day since which each small connection has 13 rows. */
const SYNC_FROM = dayBefore(15)

const small = Array.from({ length: CONNECTIONS }, (_, index) => index + 1)
const FULL = { limit: 1000, page: 0 }

/** The loads, by their letters in bench/README.md. */
export function loads(largeRows: number): Load[] {
  const last = largeRows / FULL.limit - 1
  const inLarge = (page: number) => [{ connection: LARGE, limit: FULL.limit, page }]
  const size = largeRows.toLocaleString('en')
  return [
    fullPages(small, ROWS_EACH),
    dailySyncs(small, ROWS_EACH),
    {
      ...dailySyncs(small, ROWS_EACH),
      key: 'b busy',
      title: 'the same beside two busy loops',
      busyLoops: 2,
    },
    pages('b full', 'a small full page of a range: 10 of 13 rows', smallFullPages),
    pages('c first', `page 0 of ${size} rows`, inLarge(0)),
    pages('c middle', `the middle page of ${size} rows`, inLarge(Math.floor(last / 2))),
    pages('c last', `the last page of ${size} rows`, inLarge(last)),
    others('d', 'the transfer orders of a connection', orderRequests),
    unmodifiedLoad,
    { ...unmodifiedLoad, key: 'e busy', title: 'the same beside two busy loops', busyLoops: 2 },
    others('f 401', 'an unknown token', unauthorizedRequests),
    others('f 404', 'an unknown connection', missingRequests),
    // Few clients: large requests share one in ten database connections, and the others wait.
    pages('g', 'limit=10000', tenThousands(largeRows), 4),
  ]
}

const smallFullPages = small.map((connection) => ({
  limit: 10,
  page: 0,
  from: SYNC_FROM,
  connection,
}))

/** @param rows that each connection has */
export function fullPages(connections: number[], rows: number): Pages {
  const queries = connections.map((connection) => ({ ...FULL, connection }))
  return pages('a', `a full page: 1,000 of ${rows.toLocaleString('en')} rows`, queries)
}

/** @param rows that each connection has */
export function dailySyncs(connections: number[], rows: number): Pages {
  const queries = connections.map((connection) => ({ ...FULL, from: SYNC_FROM, connection }))
  return pages('b', `the daily sync: 13 of ${rows.toLocaleString('en')} rows`, queries)
}

const tenThousands = (largeRows: number) =>
  Array.from({ length: Math.min(10, largeRows / 10_000) }, (_, page) => ({
    connection: LARGE,
    limit: 10_000,
    page,
  }))

/** Full pages and daily syncs of the small connections. */
export const smallLoads = [fullPages(small, ROWS_EACH), dailySyncs(small, ROWS_EACH)]

/** Daily syncs without a change. */
export const unmodifiedLoad = others(
  'e',
  'the daily sync again, with If-None-Match',
  unmodifiedRequests,
)

interface Pages extends Load {
  queries: PageQuery[]
  requests(target: Target): WireRequest[]
}

function pages(key: string, title: string, queries: PageQuery[], clients = CLIENTS): Pages {
  const requests = (target: Target) =>
    queries.map((query) => wireRequest(target.page(query), target.headers(query.connection)))
  return { key, title, clients, queries, requests }
}

function others(key: string, title: string, requests: Load['requests']): Load {
  return { key, title, clients: CLIENTS, requests }
}

function orderRequests(target: Target): WireRequest[] {
  return small.map((id) => wireRequest(target.orders(id), target.headers(id)))
}

/** Conditional requests; undefined if responses have no ETag. */
async function unmodifiedRequests(target: Target): Promise<WireRequest[] | undefined> {
  const requests: WireRequest[] = []
  for (const connection of small) {
    const path = target.page({ ...FULL, connection, from: SYNC_FROM })
    const headers = target.headers(connection)
    const response = await fetch(addressOf(target, path), { headers })
    await response.bytes()
    const etag = response.headers.get('etag')
    if (etag === null) return undefined
    requests.push(wireRequest(path, { ...headers, 'if-none-match': etag }, 304))
  }
  return requests
}

// The compared servers authenticate nobody, and an unknown connection is an empty one.
const authenticates = (target: Target) => target.headers(1).authorization !== undefined

function unauthorizedRequests(target: Target): WireRequest[] | undefined {
  if (!authenticates(target)) return undefined
  const headers = { authorization: 'Bearer nobody' }
  return small.map((id) => wireRequest(target.page({ ...FULL, connection: id }), headers, 401))
}

function missingRequests(target: Target): WireRequest[] | undefined {
  if (!authenticates(target)) return undefined
  return small.map((id) => {
    const path = target.page({ ...FULL, connection: id + LARGE })
    return wireRequest(path, target.headers(id), 404)
  })
}
