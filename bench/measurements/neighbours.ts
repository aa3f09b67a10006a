import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { loginOfCheckout } from '../data/checkout-login.ts'
import { fill, LARGE } from '../data/data-set.ts'
import { type PostgresServer, withDatabase } from '../data/database.ts'
import { generateConstantLoad, type LoadOptions, wireRequest } from '../load/load-generator.ts'
import { dailySyncs, loads } from '../load/loads.ts'
import { median, percentile } from '../load/statistics.ts'
import { digits, table } from '../report/tables.ts'
import { withServers } from '../servers/fixture.ts'
import { startService, type Target } from '../servers/targets.ts'

const ROWS = 200_000
/** Daily syncs a second of the measured app, from connections of its own. */
const PER_SECOND = 200
const CLIENTS = 16
const ROUNDS = 3
const DURATION_MS = 3_000
/** Time in which the load of the other app begins. */
const LEAD_MS = 500

/** What another app, or a caller without credentials, does meanwhile. */
interface Neighbour {
  title: string
  load?(service: Target): Promise<Pick<LoadOptions, 'clients' | 'requests'>>
}

const NEIGHBOURS: Neighbour[] = [
  { title: 'nobody' },
  {
    title: '400 connections with unknown tokens',
    load: async (service) => {
      const requests = await loads(ROWS)
        .find(({ key }) => key === 'f 401')
        ?.requests(service)
      return { clients: 400, requests: requests ?? [] }
    },
  },
  {
    title: '100 clients that read limit=10000',
    load: async (service) => {
      const requests = await loads(ROWS)
        .find(({ key }) => key === 'g')
        ?.requests(service)
      return { clients: 100, requests: requests ?? [] }
    },
  },
  {
    title: '20 exports at a time',
    load: async (service) => {
      const [path = ''] = service.page({ connection: LARGE, limit: 1, page: 0 }).split('?')
      const headers = { ...service.headers(LARGE), accept: 'application/x-ndjson' }
      return { clients: 20, requests: [wireRequest(path, headers)] }
    },
  },
]

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
  const found = checkouts.map(() => [] as Float64Array[])
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [index, { name, service }] of checkouts.entries()) {
      const latencies = await latenciesNextTo(neighbour, service)
      found[index]?.push(latencies)
      const p99 = digits(percentile(latencies, 0.99))
      process.stderr.write(`round ${round + 1}: ${neighbour.title}: ${name}: p99 ${p99} ms\n`)
    }
  }
  const p99s = found.map((rounds) => rounds.map((latencies) => percentile(latencies, 0.99)))
  return checkouts.map(({ name }, index) => {
    const rounds = found[index] ?? []
    const own = p99s[index] ?? []
    const ratios = own.map((p99, round) => p99 / (p99s[0]?.[round] ?? Number.NaN))
    return [
      neighbour.title,
      name,
      digits(median(rounds.map((latencies) => percentile(latencies, 0.5)))),
      digits(median(own)),
      digits(median(ratios)),
      digits(Math.max(...rounds.map((latencies) => latencies.at(-1) ?? 0))),
    ]
  })
}

async function latenciesNextTo({ load }: Neighbour, service: Target): Promise<Float64Array> {
  const { port } = service
  const own = Array.from({ length: LARGE - 1 }, (_, index) => index + 1).filter(
    (connection) =>
      service.headers(connection).authorization !== service.headers(LARGE).authorization,
  )
  const requests = dailySyncs(own, 1_500).requests(service)
  const options = { port, clients: CLIENTS, requests, durationMs: DURATION_MS }
  const other = load && (await load(service))
  // A thread of its own: reading megabytes would delay the clock of the measured app.
  const worker =
    other &&
    new Worker(new URL('../load/load-worker.ts', import.meta.url), {
      workerData: { ...other, port, durationMs: LEAD_MS + DURATION_MS },
    })
  const ended = worker && once(worker, 'message')
  if (worker) await sleep(LEAD_MS)
  const { latencies } = await generateConstantLoad(options, PER_SECOND)
  await ended
  return latencies
}
