import { CONNECTIONS, fillSmall, ROWS_EACH, settle } from '../data/data-set.ts'
import { type PostgresServer, withDatabase } from '../data/database.ts'
import { type WireRequest, wireRequest } from '../load/load-generator.ts'
import { loads } from '../load/loads.ts'
import { type MeasureOptions, measure } from '../load/measure.ts'
import { serverRunner } from '../load/runners.ts'
import { loadTable } from '../report/tables.ts'
import { withServers } from '../servers/fixture.ts'
import { addressOf, startService, type Target } from '../servers/targets.ts'

/** Changes that the client does not have; as many as rows of a daily sync. */
const CHANGES = 13

/** Compares requests for the changes since a cursor with daily syncs. */
export async function measureChanges(server: PostgresServer, options: MeasureOptions) {
  return withDatabase(server, async (database) => {
    await fillSmall(database.owner)
    await settle(database.owner)
    return withServers(async (start) => {
      const service = await start(startService(database.serviceUrl))
      const requestsOf = async (key: string) =>
        (await loads(ROWS_EACH)
          .find((load) => load.key === key)
          ?.requests(service)) ?? []
      const some = await changePaths(service, ROWS_EACH - CHANGES)
      const none = await changePaths(service, ROWS_EACH)
      const wired = (paths: string[]) =>
        paths.map((path, index) => wireRequest(path, service.headers(index + 1)))
      const runners = [
        { name: 'daily sync, 13 rows', requests: await requestsOf('b') },
        { name: 'daily sync, 304', requests: await requestsOf('e') },
        { name: '13 changes', requests: wired(some) },
        { name: 'no changes', requests: wired(none) },
        { name: 'no changes, 304', requests: await unmodified(service, none) },
      ].map(({ name, requests }) => {
        const load = { key: 'changes', title: '', clients: 16, requests: () => requests }
        return serverRunner(database, load, { ...service, name }, requests)
      })
      return loadTable(await measure(runners, options), 'first')
    })
  })
}

/** Paths of clients that have this number of rows of each connection. */
async function changePaths(service: Target, rows: number) {
  const paths: string[] = []
  for (let connection = 1; connection <= CONNECTIONS; connection += 1) {
    const path = service.page({ connection, limit: 0, page: 0 }).replace(/\?.*/, '?')
    const headers = service.headers(connection)
    const first = `${path}since=start&limit=${rows}`
    const response = await fetch(addressOf(service, first), { headers })
    const { nextCursor } = (await response.json()) as { nextCursor: string }
    paths.push(`${path}since=${nextCursor}&limit=1000`)
  }
  return paths
}

/** The requests with the ETags of their responses. */
async function unmodified(service: Target, paths: string[]) {
  const requests: WireRequest[] = []
  for (const [index, path] of paths.entries()) {
    const headers = service.headers(index + 1)
    const response = await fetch(addressOf(service, path), { headers })
    await response.bytes()
    const etag = String(response.headers.get('etag'))
    requests.push(wireRequest(path, { ...headers, 'if-none-match': etag }, 304))
  }
  return requests
}
