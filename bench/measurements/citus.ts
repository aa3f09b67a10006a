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

/** The service on one database, with its figures by round. */
interface Series {
  name: string
  service: Target
  importRate: number
  rates: number[]
  /** Processor time per request, in ms. */
  coordinatorCpu: number[]
  workerCpu: number[]
}

/**
 * Compares daily syncs on Citus, with one and two workers, with those on the coordinator's PostgreSQL without
 * Citus. All servers share this machine: the processor time of a request tells more than the rate.
 */
export async function measureCitus(options: MeasureOptions): Promise<string> {
  if (citusPrograms === undefined) throw new Error('Set TEST_CITUS: see CONTRIBUTING.md.')
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
      return withDatabase({ url: citus.url, embedded: false }, async ({ ownerUrl }) => {
        series.unshift(await prepare(start, 'PostgreSQL without Citus', ownerUrl))
        for (const { service } of series) await generateLoad(loadOf(service, options.warmUpMs))
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
  const url = Object.assign(new URL(ownerUrl), { username: 'investment_service' }).href
  const isCitus = name.startsWith('Citus')
  const service = await start(startService(url, { DATABASE_GENERIC_PLANS: String(!isCitus) }))
  return { name, service, importRate, rates: [], coordinatorCpu: [], workerCpu: [] }
}

const loadOf = (service: Target, durationMs: number) => {
  const { port } = service
  return { port, clients: LOAD.clients, requests: LOAD.requests(service) ?? [], durationMs }
}

/** @param pids of the coordinator and the workers */
async function measureRound(series: Series, pids: number[], durationMs: number): Promise<void> {
  const before = pids.map(cpuOfFamily)
  const { rate, requests } = await generateLoad(loadOf(series.service, durationMs))
  const spent = pids.map((pid, index) => (cpuOfFamily(pid) - (before[index] ?? 0)) / requests)
  const [coordinator = 0, ...workers] = spent
  series.rates.push(rate)
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
      digits(series.importRate),
    ]),
  )
}
