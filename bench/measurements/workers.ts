import { availableParallelism } from 'node:os'
import { fillSmall, settle } from '../data/data-set.ts'
import { type PostgresServer, withDatabase } from '../data/database.ts'
import { smallLoads } from '../load/loads.ts'
import { type MeasureOptions, measure, medianOf, type Series } from '../load/measure.ts'
import { databaseLimit, type Runner, serverRunner } from '../load/runners.ts'
import { digits, loadTable, table } from '../report/tables.ts'
import { withServers } from '../servers/fixture.ts'
import { startService } from '../servers/targets.ts'

const WORKERS = [1, 2, 4]
const MOST = Math.max(...WORKERS)
/** With the clients of one process, each worker would have few requests at a time, and wake up for each. */
const loads = smallLoads.map((load) => ({ ...load, clients: load.clients * MOST }))

/** Compares instances of one, two and four workers with the database alone. */
export async function measureWorkers(server: PostgresServer, options: MeasureOptions) {
  return withDatabase(server, async (database) => {
    await fillSmall(database.owner)
    await settle(database.owner)
    return withServers(async (start) => {
      const runners: Runner[] = []
      for (const workers of WORKERS) {
        const settings = { WORKERS: String(workers) }
        const service = await start(startService(database.serviceUrl, settings))
        const target = { ...service, name: nameOf(workers) }
        for (const load of loads) {
          runners.push(serverRunner(database, load, target, load.requests(service)))
        }
      }
      for (const load of loads) runners.push(databaseLimit(database, load, load.queries))
      const series = await measure(runners, { ...options, warmUpMs: options.warmUpMs * MOST })
      return `${ratios(series)}\n\n${loadTable(series, 'first')}`
    })
  })
}

const nameOf = (workers: number) => (workers === 1 ? 'one process' : `${workers} workers`)

function ratios(series: Series[]): string {
  const rows = loads.flatMap(({ key }) => {
    const [one = Number.NaN, ...others] = series
      .filter(({ load }) => load.key === key)
      .map(({ samples }) => medianOf(samples, 'rate') ?? Number.NaN)
    const database = others.pop() ?? Number.NaN
    return [one, ...others].map((rate, index) => [
      `(${key}) ${nameOf(WORKERS[index] ?? 0)}`,
      digits(rate / one),
      digits(rate / database),
    ])
  })
  const cores = `on ${availableParallelism()} cores`
  return table([`Requests/s ${cores}`, '÷ one process', '÷ the database alone'], rows)
}
