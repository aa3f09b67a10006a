import type { BenchDatabase } from '../data/database.ts'
import { compileNest } from './install.ts'
import type { ServerProcess } from './server-process.ts'
import { COMPARED, startComparedServer, startService, type Target } from './targets.ts'

/** All that the loads run against. */
export interface Fixture {
  database: BenchDatabase
  service: Target
  compared: Target[]
  /** The limit of HTTP in Node: compared-servers/stored-response.ts. */
  storedResponse: ServerProcess
}

interface Stoppable {
  stop(): Promise<void>
}

/** Starts a server that is stopped when the measurement ends. */
export type Start = <T extends Stoppable | undefined>(starting: Promise<T>) => Promise<T>

/** Stops every server that `use` started, even after a failure. */
export async function withServers<T>(use: (start: Start) => Promise<T>): Promise<T> {
  const started: Stoppable[] = []
  try {
    return await use(async (starting) => {
      const server = await starting
      if (server) started.push(server)
      return server
    })
  } finally {
    await Promise.all(started.map((server) => server.stop()))
  }
}

/** Starts the service, the compared servers and the limit of HTTP, on one database. */
export async function withFixture<T>(
  database: BenchDatabase,
  use: (fixture: Fixture) => Promise<T>,
): Promise<T> {
  return withServers(async (start) => {
    await compileNest()
    const service = await start(startService(database.serviceUrl))
    const compared: Target[] = []
    for (const { api, script, login } of COMPARED) {
      const url = login === 'owner' ? database.ownerUrl : database.serviceUrl
      compared.push({ ...api, ...(await start(startComparedServer(script, url))) })
    }
    const script = 'compared-servers/stored-response.ts'
    const storedResponse = await start(startComparedServer(script))
    return use({ database, service, compared, storedResponse })
  })
}
