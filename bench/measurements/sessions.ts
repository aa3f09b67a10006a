import { fillSmall, settle } from '../data/data-set.ts'
import { type BenchDatabase, type PostgresServer, withDatabase } from '../data/database.ts'
import { databaseAlone } from '../load/database-alone.ts'
import { smallLoads } from '../load/loads.ts'
import { type MeasureOptions, measure } from '../load/measure.ts'
import { type Runner, serverRunner } from '../load/runners.ts'
import { median } from '../load/statistics.ts'
import { digits, loadTable, table } from '../report/tables.ts'
import { withServers } from '../servers/fixture.ts'
import { startPgBouncer } from '../servers/pgbouncer.ts'
import { startService } from '../servers/targets.ts'

/**
 * Compares prepared with unnamed statements, directly and through PgBouncer in transaction mode. Also
 * compares row-level security with a role that bypasses it.
 */
export async function measureSessions(server: PostgresServer, options: MeasureOptions) {
  return withDatabase(server, async (database) => {
    await fillSmall(database.owner)
    await settle(database.owner)
    return withServers(async (start) => {
      const runners: Runner[] = []
      const add = async (name: string, url: string, settings?: Record<string, string>) => {
        const service = await start(startService(url, settings))
        for (const load of smallLoads) {
          runners.push(serverRunner(database, load, { ...service, name }, load.requests(service)))
        }
      }
      await add('prepared, row-level security', database.serviceUrl)
      await add('prepared, no row-level security', database.ownerUrl)
      const pooler = await start(startPgBouncer(database.serviceUrl))
      if (pooler) {
        const through = `through PgBouncer ${pooler.version}`
        const form = pooler.supportsPrepared ? 'prepared' : 'unnamed'
        await add(`${form}, ${through}`, pooler.url, { DATABASE_POOLER: 'true' })
      }
      const services = loadTable(await measure(runners, options), 'first')
      return `${services}\n\n${await rowSecurityTable(database, options)}`
    })
  })
}

/** Cost of row-level security in the database alone, without the noise of a service. */
async function rowSecurityTable({ serviceUrl, ownerUrl }: BenchDatabase, options: MeasureOptions) {
  const queries = smallLoads[1]?.queries ?? []
  const withoutSettings = (text: string) =>
    text.replaceAll(
      /set_config\('[^']+', ((?:[^()]|\([^()]*(?:\([^()]*\))?[^()]*\))+?), true\)/g,
      '($1)',
    )
  const forms: [string, string, ((text: string) => string)?][] = [
    ['row-level security', serviceUrl],
    ['the same statement, as a role that bypasses it', ownerUrl],
    ['the statement without set_config(), as that role', ownerUrl, withoutSettings],
  ]
  const rates = forms.map((): number[] => [])
  const seconds = Math.ceil(options.durationMs / 1000)
  for (let round = 0; round < options.rounds; round += 1) {
    for (const [index, [, url, change]] of forms.entries()) {
      const load = { clients: 16, seconds, ...(change ? { change } : {}) }
      const found = await databaseAlone(url, queries, load)
      if (found) rates[index]?.push(found.rate)
    }
  }
  const first = median(rates[0] ?? [])
  return table(
    ['(b) in the database alone', 'Statements/s', 'first ÷ row'],
    forms.map(([words], index) => {
      const rate = median(rates[index] ?? [])
      return [words, digits(rate), digits(first / rate)]
    }),
  )
}
