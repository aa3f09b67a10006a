import { loginOfCheckout } from '../data/checkout-login.ts'
import { fill } from '../data/data-set.ts'
import { type BenchDatabase, type PostgresServer, withDatabase } from '../data/database.ts'
import { type Load, loads } from '../load/loads.ts'
import { type MeasureOptions, measure, medianOf, type Series } from '../load/measure.ts'
import { constantRunner, type Runner, type Sample, serverRunner } from '../load/runners.ts'
import { median } from '../load/statistics.ts'
import { digits, table } from '../report/tables.ts'
import { withServers } from '../servers/fixture.ts'
import { startService, type Target } from '../servers/targets.ts'

const BASELINE = 'baseline'
const ITSELF = 'the baseline again'
const CHANGED = 'this checkout'

/** Loads whose latency is also measured at a constant rate: shares of the highest rate of the baseline. */
const CONSTANT_LOADS = ['b', 'e']
const SHARES = [0.5, 0.8]

interface Started {
  name: string
  service: Target
}

/**
 * Compares this checkout with another one, such as the commit before, in turn on the same database. The other one runs
 * twice: what differs between its two processes is the noise of the machine. All requests have the days of the one data set.
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
      const { serviceUrl } = database
      const baselineUrl = await loginOfCheckout(database, directory)
      const services: Started[] = [
        { name: BASELINE, service: await start(startService(baselineUrl, {}, directory)) },
        { name: ITSELF, service: await start(startService(baselineUrl, {}, directory)) },
        { name: CHANGED, service: await start(startService(serviceUrl)) },
      ]
      const fastest = await measure(await runnersOf(database, chosen, services), options)
      const constant: Runner[] = []
      for (const load of chosen.filter(({ key }) => CONSTANT_LOADS.includes(key))) {
        for (const share of SHARES)
          constant.push(...(await constantRunners(database, load, services, fastest, share)))
      }
      const atConstantRate = await measure(constant, options)
      return [ratios(fastest), ratios(atConstantRate)].join('\n\n')
    })
  })
}

async function runnersOf(
  database: BenchDatabase,
  chosen: Load[],
  services: Started[],
): Promise<Runner[]> {
  const runners: Runner[] = []
  for (const load of chosen) {
    for (const { name, service } of services) {
      const requests = (await load.requests(service)) ?? []
      runners.push(serverRunner(database, load, { ...service, name }, requests))
    }
  }
  return runners
}

async function constantRunners(
  database: BenchDatabase,
  load: Load,
  services: Started[],
  fastest: Series[],
  share: number,
): Promise<Runner[]> {
  const samples = samplesOf(fastest, load, BASELINE)
  const perSecond = Math.round((medianOf(samples, 'rate') ?? 0) * share)
  const title = `${load.title}, ${perSecond} requests/s (${share * 100} % of the baseline's rate)`
  const constant: Load = { ...load, title }
  const runners: Runner[] = []
  for (const { name, service } of services) {
    const requests = (await load.requests(service)) ?? []
    const target = { ...service, name }
    runners.push(constantRunner(database, constant, target, requests, perSecond))
  }
  return runners
}

function samplesOf(series: Series[], load: Load, target: string): Sample[] {
  return series.find((each) => each.load === load && each.target === target)?.samples ?? []
}

const FIGURES: (keyof Sample)[] = ['rate', 'p50', 'p99', 'serverCpu', 'databaseCpu']

/** Figures divided by those of the baseline. */
function ratios(series: Series[]): string {
  const rows = series.flatMap(({ load, target, samples }) => {
    if (target === BASELINE) return []
    const baseline = samplesOf(series, load, BASELINE)
    const figures = FIGURES.map((name) => digits(ratioOf(samples, baseline, [name])))
    const cpu = digits(ratioOf(samples, baseline, ['serverCpu', 'databaseCpu']))
    return [[`(${load.key}) ${load.title}: ${target}`, ...figures, cpu]]
  })
  const headings = [
    'Requests/s',
    'p50',
    'p99',
    'CPU of Node.js',
    'CPU of PostgreSQL',
    'CPU of both',
  ]
  return table(['Divided by the baseline', ...headings], rows)
}

/**
 * Ratio of the sums of some figures: the median of the ratios of each round. The speed of a shared machine changes within
 * seconds, and the samples of a round are taken next to each other. With the ratio of the medians, a checkout differed from
 * itself by up to 1.3.
 */
function ratioOf(samples: Sample[], baseline: Sample[], names: (keyof Sample)[]): number {
  const sumOf = (each: Sample) => names.reduce((sum, name) => sum + (each[name] ?? Number.NaN), 0)
  const rounds = Math.min(samples.length, baseline.length)
  const ofRounds = samples
    .slice(0, rounds)
    .map((sample, round) => sumOf(sample) / sumOf(baseline[round] as Sample))
  return median(ofRounds)
}
