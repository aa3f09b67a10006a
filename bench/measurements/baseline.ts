import { fill } from '../data/data-set.ts'
import { type PostgresServer, withDatabase } from '../data/database.ts'
import { loads } from '../load/loads.ts'
import { type MeasureOptions, measure, medianOf, type Series } from '../load/measure.ts'
import { type Runner, type Sample, serverRunner } from '../load/runners.ts'
import { digits, table } from '../report/tables.ts'
import { withServers } from '../servers/fixture.ts'
import { startService } from '../servers/targets.ts'

const TARGETS = ['baseline', 'this checkout']

/**
 * Compares this checkout with another one, such as the commit before, in turn on the same database.
 * @param directory of the other checkout, with its node_modules
 * @param only prefix of the keys of the loads to run
 */
export async function measureBaseline(
  server: PostgresServer,
  options: MeasureOptions & { largeRows: number },
  directory: string,
  only: string,
): Promise<string> {
  const chosen = loads(options.largeRows).filter(({ key }) => key.startsWith(only))
  return withDatabase(server, async (database) => {
    await fill(database.owner, options.largeRows)
    return withServers(async (start) => {
      const runners: Runner[] = []
      const services = [
        await start(startService(database.serviceUrl, {}, directory)),
        await start(startService(database.serviceUrl)),
      ]
      for (const load of chosen) {
        for (const [index, service] of services.entries()) {
          const requests = (await load.requests(service)) ?? []
          const target = { ...service, name: TARGETS[index] ?? '' }
          runners.push(serverRunner(database, load, target, requests))
        }
      }
      return ratios(await measure(runners, options))
    })
  })
}

const FIGURES: (keyof Sample)[] = ['rate', 'p50', 'p99', 'serverCpu', 'databaseCpu']

/** Figures of this checkout divided by those of the baseline: medians over the rounds. */
function ratios(series: Series[]): string {
  const rows = series.flatMap(({ load, target, samples }) => {
    const baseline = series.find((each) => each.load === load)?.samples ?? []
    if (target === TARGETS[0]) return []
    const each = FIGURES.map((name) =>
      digits((medianOf(samples, name) ?? Number.NaN) / (medianOf(baseline, name) ?? Number.NaN)),
    )
    return [[`(${load.key}) ${load.title}`, ...each]]
  })
  const headings = ['Requests/s', 'p50', 'p99', 'CPU of Node.js', 'CPU of PostgreSQL']
  return table(['This checkout ÷ the baseline', ...headings], rows)
}
