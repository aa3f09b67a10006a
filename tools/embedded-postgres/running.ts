import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Client } from 'pg'
import { clusterFolder } from './cluster.ts'

/**
 * Finds the embedded database that runs on a data folder, whichever process started it.
 * @returns its URL, or undefined when none answers
 */
export async function findRunning(dataDir: string): Promise<string | undefined> {
  const folder = clusterFolder(dataDir)
  const url = await urlFrom(folder)
  return url && (await answers(url)) ? url : undefined
}

/** The URL that PostgreSQL's lock file names: it may be of a server that is gone. */
export async function urlFrom(folder: string): Promise<string | undefined> {
  const port = (await lockFile(folder))[3]
  if (!port) return undefined
  const password = await readFile(join(folder, 'password'), 'utf8')
  return `postgresql://postgres:${password}@127.0.0.1:${port}/postgres`
}

/** Whether the lock file is of this process and says that connections are taken. */
export async function isReady(folder: string, port: number): Promise<boolean> {
  const lines = await lockFile(folder)
  return lines[3] === String(port) && lines[7]?.trim() === 'ready'
}

/**
 * After a power cut the process id in the lock file may be some other program's, and PostgreSQL,
 * which only asks whether that id is alive, would refuse to start for ever.
 */
export async function dropStaleLock(folder: string): Promise<void> {
  const [pid] = await lockFile(folder)
  const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => undefined)
  if (pid && command !== undefined && !command.includes('postgres')) await rm(lockPath(folder))
}

const lockPath = (folder: string) => join(folder, 'data/postmaster.pid')

/** PostgreSQL's lock file, line by line: [0] process id, [3] port, [7] status. */
async function lockFile(folder: string): Promise<string[]> {
  return (await readFile(lockPath(folder), 'utf8').catch(() => '')).split('\n')
}

/** The port may be another program's by now; only this folder's database knows its password. */
async function answers(connectionString: string) {
  const client = new Client({ connectionString, connectionTimeoutMillis: 3000 })
  try {
    await client.connect()
    await client.end()
    return true
  } catch (error) {
    const tooManyClients = '53300'
    return (error as { code?: string }).code === tooManyClients
  }
}
