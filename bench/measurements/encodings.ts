import { fillSmall, settle } from '../data/data-set.ts'
import { type PostgresServer, withDatabase } from '../data/database.ts'
import { wireRequest } from '../load/load-generator.ts'
import { smallLoads } from '../load/loads.ts'
import { type MeasureOptions, measure } from '../load/measure.ts'
import { type Runner, serverRunner } from '../load/runners.ts'
import { loadTable } from '../report/tables.ts'
import { withServers } from '../servers/fixture.ts'
import { startService } from '../servers/targets.ts'

const ENCODINGS = ['identity', 'gzip', 'br', 'zstd']

/** Full pages and daily syncs of one service, with each encoding of their responses. */
export async function measureEncodings(server: PostgresServer, options: MeasureOptions) {
  return withDatabase(server, async (database) => {
    await fillSmall(database.owner)
    await settle(database.owner)
    return withServers(async (start) => {
      const service = await start(startService(database.serviceUrl))
      const runners = smallLoads.flatMap((load) =>
        ENCODINGS.map((encoding): Runner => {
          const requests = load.queries.map((query) => {
            const headers = { ...service.headers(query.connection), 'accept-encoding': encoding }
            return { ...wireRequest(service.page(query), headers), anyLength: true }
          })
          return serverRunner(database, load, { ...service, name: encoding }, requests)
        }),
      )
      return loadTable(await measure(runners, options), 'first')
    })
  })
}
