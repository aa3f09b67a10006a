import type { BenchDatabase } from './database.ts'
import type { Scene } from './runners.ts'
import type { ServerProcess } from './server-process.ts'
import { startPeer, startTargets } from './targets.ts'

/** Starts servers, and stops all that were started, whatever happens. */
export async function withServers<T>(use: (started: ServerProcess[]) => Promise<T>): Promise<T> {
  const started: ServerProcess[] = []
  try {
    return await use(started)
  } finally {
    await Promise.all(started.map((server) => server.stop()))
  }
}

/** The service, its peers and the limit of HTTP, on one database. */
export async function withScene<T>(
  database: BenchDatabase,
  use: (scene: Scene) => Promise<T>,
): Promise<T> {
  return withServers(async (started) => {
    const targets = await startTargets(database, started)
    const storedAnswer = await startPeer('peers/stored-answer.ts')
    started.push(storedAnswer)
    return use({ database, targets, storedAnswer })
  })
}
