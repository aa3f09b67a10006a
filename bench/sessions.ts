import { CONNECTIONS, fillSmall, ROWS_EACH, settle } from './data-set.ts'
import { type BenchDatabase, type BenchServer, withDatabase } from './database.ts'
import { databaseAlone } from './database-alone.ts'
import { dailySyncs, fullPages } from './loads.ts'
import { type MeasureOptions, measure } from './measure.ts'
import { startPgBouncer } from './pgbouncer.ts'
import { digits, loadTable, table } from './report.ts'
import { type Runner, serverRunner } from './runners.ts'
import { withServers } from './scene.ts'
import { median } from './statistics.ts'
import { serviceTarget, startService } from './targets.ts'

const numbers = Array.from({ length: CONNECTIONS }, (_, index) => index + 1)
const LOADS = [fullPages(numbers, ROWS_EACH), dailySyncs(numbers, ROWS_EACH)]

/**
 * Prepared statements against unnamed ones, directly and through PgBouncer in transaction mode, and
 * with row-level security or as a role that it does not bind.
 */
export async function measureSessions(server: BenchServer, options: MeasureOptions) {
  return withDatabase(server, async (database) => {
    await fillSmall(database.owner)
    await settle(database.owner)
    return withServers(async (started) => {
      const runners: Runner[] = []
      const add = async (name: string, url: string, settings?: Record<string, string>) => {
        const service = await startService(url, settings)
        started.push(service)
        for (const load of LOADS) {
          const requests = load.requests(serviceTarget(service))
          runners.push(serverRunner(database, load, { name, server: service, requests }))
        }
      }
      await add('prepared, row-level security', database.serviceUrl)
      await add('unnamed, row-level security', database.serviceUrl, { DATABASE_PREPARE: 'false' })
      await add('prepared, no row-level security', database.ownerUrl)
      const pooler = await startPgBouncer(database.serviceUrl)
      if (pooler) {
        started.push(pooler)
        const through = `through PgBouncer ${pooler.version}`
        const settings = { DATABASE_POOLER: 'true' }
        if (pooler.carriesPrepared) await add(`prepared, ${through}`, pooler.url, settings)
        await add(`unnamed, ${through}`, pooler.url, { ...settings, DATABASE_PREPARE: 'false' })
      }
      const services = loadTable(await measure(runners, options), 'first')
      return `${services}\n\n${await wallTable(database, options)}`
    })
  })
}

/** The second wall in the database alone, which a service and its noise cannot hide. */
async function wallTable({ serviceUrl, ownerUrl }: BenchDatabase, options: MeasureOptions) {
  const asks = LOADS[1]?.asks ?? []
  const silent = (text: string) =>
    text.replaceAll(
      /set_config\('[^']+', ((?:[^()]|\([^()]*(?:\([^()]*\))?[^()]*\))+?), true\)/g,
      '($1)',
    )
  const forms: [string, string, ((text: string) => string)?][] = [
    ['row-level security', serviceUrl],
    ['the same statement, of a role that it does not bind', ownerUrl],
    ['the statement without set_config(), of that role', ownerUrl, silent],
  ]
  const rates = forms.map((): number[] => [])
  const seconds = Math.ceil(options.durationMs / 1000)
  for (let round = 0; round < options.rounds; round += 1) {
    for (const [index, [, url, change]] of forms.entries()) {
      const load = { clients: 16, seconds, ...(change ? { change } : {}) }
      const found = await databaseAlone(url, asks, load)
      if (found) rates[index]?.push(found.rate)
    }
  }
  const first = median(rates[0] ?? [])
  return table(
    ['(b) in the database alone', 'Statements/s', 'first ÷ it'],
    forms.map(([words], index) => {
      const rate = median(rates[index] ?? [])
      return [words, digits(rate), digits(first / rate)]
    }),
  )
}
