import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Client } from 'pg'
import { clusterFolder } from './cluster.ts'

/**
 * Finds the embedded database that runs on a data folder, started by any process.
 * @returns its URL, or undefined if none runs
 */
export async function findRunning(dataDir: string): Promise<string | undefined> {
  const url = await urlFrom(clusterFolder(dataDir))
  return url && (await acceptsConnections(url)) ? url : undefined
}

/** Reads the URL from PostgreSQL's lock file. The server of a stale lock file is gone. */
export async function urlFrom(folder: string): Promise<string | undefined> {
  const port = (await lockFile(folder))[3]
  if (!port) return undefined
  const password = await readFile(join(folder, 'password'), 'utf8')
  return `postgresql://postgres:${password}@127.0.0.1:${port}/postgres`
}

/** Name of the server in `ps`, before the id of the process that has started it. */
export const STARTER = 'started by process'

/** Names the process that has started the server. PostgreSQL records its own command line. */
export async function starterOf(folder: string): Promise<string> {
  const command = await readFile(join(folder, 'data/postmaster.opts'), 'utf8').catch(() => '')
  const [, pid] = new RegExp(`${STARTER} (\\d+)`).exec(command) ?? []
  return pid ? `process ${pid}` : 'another process'
}

/** Returns true if the lock file belongs to the server on `port`, and that server is ready. */
export async function isReady(folder: string, port: number): Promise<boolean> {
  const lines = await lockFile(folder)
  return lines[3] === String(port) && lines[7]?.trim() === 'ready'
}

/**
 * Removes a lock file whose process id belongs to another program, for example after a power cut.
 * PostgreSQL only checks that the process exists, and would never start.
 */
export async function dropStaleLock(folder: string): Promise<void> {
  const [pid] = await lockFile(folder)
  const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => undefined)
  if (!pid || command === undefined || command.includes('postgres')) return
  // A server that is exiting has no command line any more, and may remove the file itself.
  await rm(lockPath(folder), { force: true })
}

const lockPath = (folder: string) => join(folder, 'data/postmaster.pid')

/** PostgreSQL's lock file, line by line: [0] process id, [3] port, [7] status. */
async function lockFile(folder: string): Promise<string[]> {
  return (await readFile(lockPath(folder), 'utf8').catch(() => '')).split('\n')
}

/** Connects with the password of this folder, because another program may have taken the port. */
async function acceptsConnections(connectionString: string) {
  const client = new Client({ connectionString, connectionTimeoutMillis: 3000 })
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
