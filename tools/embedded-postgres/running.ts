import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { clusterFolder } from './cluster.ts'
import { socketUrl } from './socket.ts'

/**
 * Finds the embedded database that runs on a data folder, started by any process.
 * @returns its URL, or undefined if none runs
 */
export async function findRunning(dataDir: string): Promise<string | undefined> {
  const folder = clusterFolder(dataDir)
  const url = await socketUrl(folder).catch(() => undefined)
  if (url === undefined) return undefined
  return (await acceptsConnections(url)) ? url : undefined
}

async function acceptsConnections(connectionString: string): Promise<boolean> {
  const client = new pg.Client({ connectionString, connectionTimeoutMillis: 3000 })
  // PostgreSQL may shut down while this connection is open; without a listener, the process would end.
  client.on('error', () => {})
  try {
    await client.connect()
    await client.end()
    return true
  } catch (error) {
    const tooManyConnections = '53300'
    return (error as { code?: string }).code === tooManyConnections
  }
}

/** Name of the server in `ps`, before the id of the process that has started it. */
export const STARTER = 'started by process'

/** Setting of a server that has the identity of its start. PostgreSQL ignores it, and records it with its command line. */
export const START = 'embedded.start'

/** Names the process that has started the server. */
export async function starterOf(folder: string): Promise<string> {
  const [, pid] = new RegExp(`${STARTER} (\\d+)`).exec(await commandOf(folder)) ?? []
  return pid ? `process ${pid}` : 'another process'
}

/** Returns true if the server of this start holds the lock of the folder, and is ready. */
export async function isReady(folder: string, start: string): Promise<boolean> {
  const status = (await lockFile(folder))[7]
  if (status?.trim() !== 'ready') return false
  return (await commandOf(folder)).includes(start)
}

/** Command line of the server that has last started. */
const commandOf = (folder: string) =>
  readFile(join(folder, 'data/postmaster.opts'), 'utf8').catch(() => '')

/**
 * Removes the lock files whose process id belongs to another program, for example after a power cut.
 * PostgreSQL only checks that the process exists, and would never start.
 */
export async function dropStaleLocks(folder: string, port: string): Promise<void> {
  const [pid] = await lockFile(folder)
  const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => undefined)
  if (!pid || command === undefined || command.includes('postgres')) return
  // A server that is exiting has no command line any more, and may remove the files itself.
  await rm(lockPath(folder), { force: true })
  await rm(join(folder, `.s.PGSQL.${port}.lock`), { force: true })
}

const lockPath = (folder: string) => join(folder, 'data/postmaster.pid')

/** PostgreSQL's lock file, line by line: [0] process id, [7] status. */
async function lockFile(folder: string): Promise<string[]> {
  return (await readFile(lockPath(folder), 'utf8').catch(() => '')).split('\n')
}
