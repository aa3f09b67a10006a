import { setTimeout as sleep } from 'node:timers/promises'
import { loginOfCheckout } from '../data/checkout-login.ts'
import { fill, LARGE } from '../data/data-set.ts'
import { type PostgresServer, withDatabase } from '../data/database.ts'
import { dayBefore } from '../data/rows.ts'
import { openConnection } from '../load/connection.ts'
import {
  generateConstantLoad,
  generateInWorker,
  type WireRequest,
  wireRequest,
} from '../load/load-generator.ts'
import { dailySyncs, loads } from '../load/loads.ts'
import { median, percentile } from '../load/statistics.ts'
import { digits, table } from '../report/tables.ts'
import { withServers } from '../servers/fixture.ts'
import { startService, type Target } from '../servers/targets.ts'

/** Rows of the largest connection. Twenty exports of more rows would take minutes. */
const ROWS = 50_000
/** Daily syncs a second of the measured app, from connections of its own. */
const PER_SECOND = 200
const CLIENTS = 16
const ROUNDS = 3
const DURATION_MS = 3_000
/** Time in which the load of the other app begins. */
const LEAD_MS = 500
/** First day of an export of 6,000 rows: the largest connection has five a day. */
const EXPORT_FROM = dayBefore(1_200)

/** What ten connections of another app request, over and over, next to an export. */
const NEXT_TO_EXPORT = ['limit=5', 'limit=1000', 'limit=10000', 'since=start&limit=1000']
const KEPT_ALIVE = 10

/** What another app, or a caller without credentials, sends meanwhile. */
interface Neighbour {
  title: string
  clients: number
  requests(service: Target): WireRequest[] | Promise<WireRequest[]>
}

const NEIGHBOURS: Neighbour[] = [
  { title: 'nobody', clients: 0, requests: () => [] },
  {
    title: '400 connections with unknown tokens',
    clients: 400,
    requests: (service) => requestsOfLoad('f 401', service),
  },
  {
    title: '100 clients that read limit=10000',
    clients: 100,
    requests: (service) => requestsOfLoad('g', service),
  },
  { title: '20 exports at a time', clients: 20, requests: exportRequests },
]

async function requestsOfLoad(key: string, service: Target): Promise<WireRequest[]> {
  const load = loads(ROWS).find((each) => each.key === key)
  const requests = await load?.requests(service)
  if (requests === undefined) throw new Error(`there are no requests of the load ${key}`)
  return requests
}

function exportRequests(service: Target, query = ''): WireRequest[] {
  const headers = { ...service.headers(LARGE), accept: 'application/x-ndjson' }
  return [wireRequest(pathOf(service, LARGE, query), headers)]
}

function pathOf(service: Target, connection: number, query: string): string {
  const [path = ''] = service.page({ connection, limit: 1, page: 0 }).split('?')
  return query === '' ? path : `${path}?${query}`
}

type Row = (string | number | undefined)[]

interface Checkout {
  name: string
  service: Target
}

/**
 * Measures the latency of an app next to the load of another one, from the intended start of each request.
 * @param baseline directory of another checkout, which is measured in turn: twice, to show the noise of the machine
 */
export async function measureNeighbours(
  server: PostgresServer,
  baseline?: string,
): Promise<string> {
  return withDatabase(server, async (database) => {
    await fill(database.owner, ROWS)
    return withServers(async (start) => {
      const checkouts: Checkout[] = []
      if (baseline !== undefined) {
        const url = await loginOfCheckout(database, baseline)
        for (const name of ['baseline', 'the baseline again'])
          checkouts.push({ name, service: await start(startService(url, {}, baseline)) })
      }
      const service = await start(startService(database.serviceUrl))
      checkouts.push({ name: 'this checkout', service })
      const rows: Row[] = []
      for (const neighbour of NEIGHBOURS) rows.push(...(await measureNextTo(neighbour, checkouts)))
      const exports = await measureExports(checkouts)
      return `${table(COLUMNS, rows)}\n\n${table(EXPORT_COLUMNS, exports)}`
    })
  })
}

const COLUMNS = ['Neighbour', 'checkout', 'p50 ms', 'p99 ms', 'p99 ÷ baseline', 'slowest ms']

async function measureNextTo(neighbour: Neighbour, checkouts: Checkout[]) {
  const found = checkouts.map(() => [] as Latencies[])
  for (let round = 1; round <= ROUNDS; round += 1) {
    for (const [index, { name, service }] of checkouts.entries()) {
      const latencies = await latenciesNextTo(neighbour, service)
      found[index]?.push(latencies)
      const { p99 } = latencies
      process.stderr.write(`round ${round}: ${neighbour.title}: ${name}: p99 ${digits(p99)} ms\n`)
    }
  }
  return checkouts.map(({ name }, index) => {
    const rounds = found[index] ?? []
    const ratios = rounds.map(({ p99 }, round) => p99 / (found[0]?.[round]?.p99 ?? Number.NaN))
    return [
      neighbour.title,
      name,
      digits(median(rounds.map(({ p50 }) => p50))),
      digits(median(rounds.map(({ p99 }) => p99))),
      digits(median(ratios)),
      digits(Math.max(...rounds.map(({ slowest }) => slowest))),
    ]
  })
}

/** In ms. */
interface Latencies {
  p50: number
  p99: number
  slowest: number
}

async function latenciesNextTo(neighbour: Neighbour, service: Target): Promise<Latencies> {
  const { port } = service
  const requests = dailySyncs(connectionsOfOthers(service), 1_500).requests(service)
  const load = {
    port,
    clients: neighbour.clients,
    requests: await neighbour.requests(service),
    durationMs: LEAD_MS + DURATION_MS,
  }
  const ended = neighbour.clients > 0 ? generateInWorker(load) : undefined
  await sleep(LEAD_MS)
  const options = { port, clients: CLIENTS, requests, durationMs: DURATION_MS }
  const { latencies } = await generateConstantLoad(options, PER_SECOND)
  await ended
  return {
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
    slowest: latencies.at(-1) ?? Number.NaN,
  }
}

/** Connections of the apps that do not have the large one. */
function connectionsOfOthers(service: Target): number[] {
  const { authorization } = service.headers(LARGE)
  return Array.from({ length: LARGE - 1 }, (_, index) => index + 1).filter(
    (connection) => service.headers(connection).authorization !== authorization,
  )
}

const EXPORT_COLUMNS = [
  'Ten connections of another app',
  'checkout',
  'export ms',
  '÷ alone',
  'pages/s',
]

/** Measures an export alone and next to pages of another app, in rounds: other work on the machine affects all alike. */
async function measureExports(checkouts: Checkout[]): Promise<Row[]> {
  const cases = checkouts.flatMap(({ name, service }) =>
    [undefined, ...NEXT_TO_EXPORT].map((query) => ({
      name,
      service,
      query,
      found: [] as Exports[],
    })),
  )
  for (let round = 1; round <= ROUNDS; round += 1) {
    for (const { name, service, query, found } of cases) {
      const exports = await exportsNextTo(query, service)
      found.push(exports)
      const ms = digits(exports.ms)
      process.stderr.write(`round ${round}: an export next to ${query}: ${name}: ${ms} ms\n`)
    }
  }
  const alone = (name: string) => cases.find((each) => each.name === name)?.found ?? []
  return cases.map(({ name, query, found }) => {
    const ratios = found.map(({ ms }, round) => ms / (alone(name)[round]?.ms ?? Number.NaN))
    return [
      query ?? 'none',
      name,
      digits(median(found.map(({ ms }) => ms))),
      digits(median(ratios)),
      digits(median(found.map(({ rate }) => rate))),
    ]
  })
}

interface Exports {
  /** Median duration, in ms. */
  ms: number
  /** Pages of the other app in a second. */
  rate: number
}

async function exportsNextTo(query: string | undefined, service: Target): Promise<Exports> {
  const { port } = service
  const [request] = exportRequests(service, `from=${EXPORT_FROM}`)
  const connection = await openConnection(port)
  const send = async (): Promise<number> => {
    const sentAt = performance.now()
    const { status } = await connection.send(request?.bytes as Buffer)
    if (status !== 200) throw new Error(`an export got ${status}`)
    return performance.now() - sentAt
  }
  // The first one compiles the hot functions.
  await send()
  const pages = query === undefined ? [] : pagesOfOneApp(service, query)
  const load = { port, clients: KEPT_ALIVE, requests: pages, durationMs: LEAD_MS + DURATION_MS }
  const ended = pages.length > 0 ? generateInWorker(load) : undefined
  await sleep(LEAD_MS)
  const end = performance.now() + DURATION_MS
  const durations: number[] = []
  while (performance.now() < end) durations.push(await send())
  connection.close()
  return { ms: median(durations), rate: (await ended)?.rate ?? 0 }
}

/** Requests of one app that does not have the large connection. */
function pagesOfOneApp(service: Target, query: string): WireRequest[] {
  const [first = 1, ...others] = connectionsOfOthers(service)
  const headers = service.headers(first)
  const isOfApp = (id: number) => service.headers(id).authorization === headers.authorization
  const connections = [first, ...others.filter(isOfApp)]
  return connections.map((id) => wireRequest(pathOf(service, id, query), headers))
}
