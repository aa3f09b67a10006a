import pg from 'pg'
import { plannerSettings } from '../../src/postgres/statements.ts'
import { citusPrograms, createCitusDatabase, startCitus } from '../../test/support/citus.ts'
import { databaseUrl } from '../../test/support/template.ts'
import { importLines, makeConnections, ROWS_PER_DAY } from '../data/data-set.ts'
import { withDatabase } from '../data/database.ts'
import { transactionLines } from '../data/rows.ts'
import { generateLoad } from '../load/load-generator.ts'
import { dailySyncs } from '../load/loads.ts'
import type { MeasureOptions } from '../load/measure.ts'
import { median } from '../load/statistics.ts'
import { digits, table } from '../report/tables.ts'
import { type Start, withServers } from '../servers/fixture.ts'
import { cpuOfFamily, parentOf } from '../servers/process-usage.ts'
import { startService, type Target } from '../servers/targets.ts'

const CONNECTIONS = 50
const ROWS_EACH = 1_000
const numbers = Array.from({ length: CONNECTIONS }, (_, index) => index + 1)
const LOAD = dailySyncs(numbers, ROWS_EACH)
/** Rows of the import that is timed, into one connection. */
const IMPORTED = 100_000

/** Services on one database, with their figures by round. */
interface Series {
  name: string
  services: Target[]
  importRate: number | undefined
  rates: number[]
  /** Processor time per request, in ms. */
  coordinatorCpu: number[]
  workerCpu: number[]
}

/**
 * Compares daily syncs on Citus, with one and two workers, with those on the coordinator's PostgreSQL without
 * Citus. Compares two services on the coordinator with one on each worker. All servers share this machine: the processor time of a request tells more than the rate.
 */
export async function measureCitus(options: MeasureOptions): Promise<string> {
  if (citusPrograms === undefined) throw new Error('Set TEST_CITUS: see test/README.md.')
  const citus = await startCitus()
  const pids = await Promise.all([citus.url, ...citus.workers.map(({ url }) => url)].map(pidOf))
  try {
    return await withServers(async (start) => {
      const series: Series[] = []
      for (const [workers, name] of [
        [1, 'Citus, one worker'],
        [2, 'Citus, two workers'],
      ] as const) {
        await createCitusDatabase(citus.url, `bench_${workers}`, workers)
        series.push(await prepare(start, name, databaseUrl(citus.url, `bench_${workers}`)))
      }
      for (const [name, urls] of [
        ['Citus, two workers, two services on the coordinator', [citus.url, citus.url]],
        ['Citus, two workers, a service on each', citus.workers.map(({ url }) => url)],
      ] as const) {
        const services = urls.map((url) => startOn(start, databaseUrl(url, 'bench_2')))
        series.push(seriesOf(name, await Promise.all(services)))
      }
      return withDatabase({ url: citus.url, origin: 'Citus' }, async ({ ownerUrl }) => {
        series.unshift(await prepare(start, 'PostgreSQL without Citus', ownerUrl))
        for (const one of series) await loadAll(one, options.warmUpMs)
        for (let round = 0; round < options.rounds; round += 1)
          for (const one of series) await measureRound(one, pids, options.durationMs)
        return tableOf(series)
      })
    })
  } finally {
    await citus.stop()
  }
}

async function pidOf(url: string): Promise<number> {
  const client = new pg.Client(url)
  await client.connect()
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
  const pid = parentOf(rows[0]?.pid ?? 0) ?? 0
  await client.end()
  return pid
}

/** Fills the database, and starts a service that reads it. */
async function prepare(start: Start, name: string, ownerUrl: string): Promise<Series> {
  const owner = new pg.Pool({ connectionString: ownerUrl, max: 4 })
  const large = CONNECTIONS + 1
  await makeConnections(owner, large)
  for (const id of numbers) {
    const lines = transactionLines(id, ROWS_EACH, ROWS_PER_DAY)
    await importLines(owner, 'portfolio-transactions', id, lines)
  }
  const begin = performance.now()
  const lines = transactionLines(large, IMPORTED, 100)
  await importLines(owner, 'portfolio-transactions', large, lines)
  const importRate = (IMPORTED / (performance.now() - begin)) * 1_000
  // As `operator migrate` does: Citus passes no setting of a session to its workers.
  const settings = Object.entries(plannerSettings(false))
  await owner.query('alter role investment_service login')
  for (const [setting, value] of settings)
    await owner.query(`alter role investment_service set ${setting} = ${value}`)
  await owner.end()
  return seriesOf(name, [await startOn(start, ownerUrl)], importRate)
}

function startOn(start: Start, ownerUrl: string): Promise<Target> {
  const url = Object.assign(new URL(ownerUrl), { username: 'investment_service' }).href
  return start(startService(url))
}

function seriesOf(name: string, services: Target[], importRate?: number): Series {
  return { name, services, importRate, rates: [], coordinatorCpu: [], workerCpu: [] }
}

/** Divides the clients among the services. */
function loadAll({ services }: Series, durationMs: number) {
  const clients = LOAD.clients / services.length
  const loads = services.map((service) => {
    const requests = LOAD.requests(service) ?? []
    return generateLoad({ port: service.port, clients, requests, durationMs })
  })
  return Promise.all(loads)
}

/** @param pids of the coordinator and the workers */
async function measureRound(series: Series, pids: number[], durationMs: number): Promise<void> {
  const before = pids.map(cpuOfFamily)
  const loads = await loadAll(series, durationMs)
  const requests = loads.reduce((sum, load) => sum + load.requests, 0)
  const spent = pids.map((pid, index) => (cpuOfFamily(pid) - (before[index] ?? 0)) / requests)
  const [coordinator = 0, ...workers] = spent
  series.rates.push(loads.reduce((sum, load) => sum + load.rate, 0))
  series.coordinatorCpu.push(coordinator)
  series.workerCpu.push(workers.reduce((sum, one) => sum + one))
}

function tableOf(all: Series[]): string {
  const ratio = ({ rates }: Series) =>
    median(rates.map((rate, round) => rate / (all[0]?.rates[round] ?? Number.NaN)))
  return table(
    [
      'Daily syncs',
      'Requests/s',
      '÷ first row',
      'CPU ms, coordinator',
      'CPU ms, workers',
      'Import, rows/s',
    ],
    all.map((series) => [
      series.name,
      digits(median(series.rates)),
      digits(ratio(series)),
      digits(median(series.coordinatorCpu)),
      digits(median(series.workerCpu)),
      series.importRate && digits(series.importRate),
    ]),
  )
}
