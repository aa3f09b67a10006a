import { setTimeout as sleep } from 'node:timers/promises'
import { loginOfCheckout } from '../data/checkout-login.ts'
import { fill, LARGE } from '../data/data-set.ts'
import { type PostgresServer, withDatabase } from '../data/database.ts'
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

function exportRequests(service: Target): WireRequest[] {
  const [path = ''] = service.page({ connection: LARGE, limit: 1, page: 0 }).split('?')
  const headers = { ...service.headers(LARGE), accept: 'application/x-ndjson' }
  return [wireRequest(path, headers)]
}

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
      const rows: (string | number | undefined)[][] = []
      for (const neighbour of NEIGHBOURS) rows.push(...(await measureNextTo(neighbour, checkouts)))
      return table(COLUMNS, rows)
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
