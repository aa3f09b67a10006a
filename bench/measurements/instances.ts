import { availableParallelism } from 'node:os'
import { fillSmall, settle } from '../data/data-set.ts'
import { type PostgresServer, withDatabase } from '../data/database.ts'
import { smallLoads } from '../load/loads.ts'
import { type MeasureOptions, measure, medianOf, type Series } from '../load/measure.ts'
import { pgbenchRunner, type Runner, serverRunner } from '../load/runners.ts'
import { digits, loadTable, table } from '../report/tables.ts'
import { type Start, withServers } from '../servers/fixture.ts'
import { startHaproxy } from '../servers/haproxy.ts'
import { startService, type Target } from '../servers/targets.ts'

const CORES = availableParallelism()
const INSTANCES = [1, 2, 4].filter((instances) => instances <= CORES)
const MOST = Math.max(...INSTANCES)
/** With the clients of one process, each instance would have few requests at a time, and wake up for each. */
const loads = smallLoads.map((load) => ({ ...load, clients: load.clients * 4 }))

/** Compares instances behind HAProxy with one process without it, and with pgbench. */
export async function measureInstances(server: PostgresServer, options: MeasureOptions) {
  return withDatabase(server, async (database) => {
    await fillSmall(database.owner)
    await settle(database.owner)
    return withServers(async (start) => {
      const runners: Runner[] = []
      const add = (target: Target & { pids?: number[] }) => {
        for (const load of loads) {
          runners.push(serverRunner(database, load, target, load.requests(target)))
        }
      }
      add({ ...(await start(startService(database.serviceUrl))), name: DIRECT })
      for (const count of INSTANCES) add(await startInstances(start, database.serviceUrl, count))
      for (const load of loads) runners.push(pgbenchRunner(database, load, load.queries))
      const series = await measure(runners, { ...options, warmUpMs: options.warmUpMs * MOST })
      return `${ratios(series)}\n\n${loadTable(series, 'first')}`
    })
  })
}

const DIRECT = 'one process without HAProxy'

/** Starts instances behind HAProxy. Together, they have the connections for small reads of one process (docs/scale.md). */
async function startInstances(start: Start, url: string, count: number) {
  const settings = { DATABASE_POOL_SIZE: String(2 + Math.ceil(8 / count)) }
  const instances: Target[] = []
  for (let index = 0; index < count; index += 1) {
    instances.push(await start(startService(url, settings)))
  }
  const [first] = instances as [Target]
  const haproxy = await start(startHaproxy(instances.map(({ port }) => port)))
  const pids = [haproxy.pid, ...instances.map(({ pid }) => pid)]
  const name = `${count} ${count === 1 ? 'instance' : 'instances'} behind HAProxy`
  return { ...first, ...haproxy, name, pids }
}

function ratios(series: Series[]): string {
  const rows = loads.flatMap(({ key }) => {
    const rates = series
      .filter(({ load }) => load.key === key)
      .map(({ target, samples }) => ({ target, rate: medianOf(samples, 'rate') ?? Number.NaN }))
    const one = rates[0]?.rate ?? Number.NaN
    const database = rates.pop()?.rate ?? Number.NaN
    return rates.map(({ target, rate }) => [
      `(${key}) ${target}`,
      digits(rate / one),
      digits(rate / database),
    ])
  })
  return table([`Requests/s on ${CORES} cores`, '÷ one process', '÷ pgbench'], rows)
}
