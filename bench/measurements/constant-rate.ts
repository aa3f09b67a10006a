import type { BenchDatabase } from '../data/database.ts'
import { type Load, smallLoads, unmodifiedLoad } from '../load/loads.ts'
import { type MeasureOptions, measure, medianOf, type Series } from '../load/measure.ts'
import { constantRunner, type Runner } from '../load/runners.ts'
import { digits, table } from '../report/tables.ts'
import { SERVICE, type Target } from '../servers/targets.ts'

/** Shares of the highest rate. The first one is what the calculation of growth assumes. */
const SHARES = [0.5, 0.8]

export interface ConstantRates {
  table: string
  /** Processor time of a request at half of the highest rate, by load. */
  cpu: Record<string, { server: number; database: number }>
}

/**
 * Measures loads of the service at a constant rate. A request costs more processor time than at the highest rate, where
 * a turn of the event loop has more of them.
 * @param fastest the same loads at the highest rate
 */
export async function measureConstantRates(
  database: BenchDatabase,
  service: Target,
  fastest: Series[],
  options: MeasureOptions,
): Promise<ConstantRates> {
  const runners: Runner[] = []
  const shares = new Map<Load, number>()
  for (const load of [...smallLoads, unmodifiedLoad]) {
    const requests = (await load.requests(service)) ?? []
    const found = fastest.find(
      ({ load: { key }, target }) => key === load.key && target === SERVICE,
    )
    const highest = medianOf(found?.samples ?? [], 'rate')
    if (highest === undefined) continue
    for (const share of SHARES) {
      const same = { ...load }
      shares.set(same, share)
      runners.push(constantRunner(database, same, service, requests, highest * share))
    }
  }
  const series = await measure(runners, options)
  const cpu: ConstantRates['cpu'] = {}
  const rows = series.map(({ load, samples }) => {
    const server = medianOf(samples, 'serverCpu')
    const databaseCpu = medianOf(samples, 'databaseCpu')
    const share = shares.get(load) ?? Number.NaN
    if (share === SHARES[0])
      cpu[load.key] = { server: server ?? Number.NaN, database: databaseCpu ?? Number.NaN }
    return [
      `(${load.key}) ${load.title}: ${share * 100} %`,
      digits(medianOf(samples, 'rate')),
      digits(medianOf(samples, 'p50')),
      digits(medianOf(samples, 'p99')),
      digits(server),
      digits(databaseCpu),
    ]
  })
  const columns = ['Requests/s', 'p50 ms', 'p99 ms', 'CPU ms, server', 'CPU ms, PostgreSQL']
  return { table: table(['At a share of the highest rate', ...columns], rows), cpu }
}
