import { randomBytes } from 'node:crypto'
import { readFile, realpath, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { clusterFolder } from './cluster.ts'
import { ProvenClient } from './proven-client.ts'

/**
 * Finds the embedded database that runs on a data folder, started by any process.
 * @returns its URL, or undefined if none runs
 */
export async function findRunning(dataDir: string): Promise<string | undefined> {
  const folder = clusterFolder(dataDir)
  if (!((await isOwnServer(folder)) && (await hasNewPassword(folder)))) return undefined
  const url = await urlFrom(folder)
  return url && (await acceptsConnections(url)) ? url : undefined
}

/** Reads the URL from PostgreSQL's lock file. The server of a stale lock file is gone. */
async function urlFrom(folder: string): Promise<string | undefined> {
  const port = (await lockFile(folder))[3]
  if (!port) return undefined
  const password = await readFile(join(folder, 'password'), 'utf8')
  return `postgresql://postgres:${password}@127.0.0.1:${port}/postgres`
}

/**
 * Returns false if the process of the lock file is not a server of this folder. After a power cut, the lock file is
 * stale, and the program of another user may listen on its port. Only Linux has /proc.
 */
async function isOwnServer(folder: string): Promise<boolean> {
  const [pid] = await lockFile(folder)
  if (!pid) return false
  if (process.platform !== 'linux') return true
  try {
    const [command, owner, own] = await Promise.all([
      readFile(`/proc/${pid}/cmdline`, 'utf8'),
      stat(`/proc/${pid}`),
      stat(join(folder, 'data')),
    ])
    return owner.uid === own.uid && command.includes(join(await realpath(folder), 'data'))
  } catch {
    return false
  }
}

/** Name of the file that names the server to which the password belongs. */
const SERVER = 'password.server'

/** Process id and start time, from the lock file. */
const serverOf = async (folder: string) => {
  const [pid, , started] = await lockFile(folder)
  return `${pid} ${started}`
}

/** Returns false while the process that has started the server has not yet changed its password. */
async function hasNewPassword(folder: string): Promise<boolean> {
  const server = await readFile(join(folder, SERVER), 'utf8').catch(() => undefined)
  return server === (await serverOf(folder))
}

/**
 * Gives the superuser of the server on `port` a new password. After an interruption, one of the two files has the
 * password that the server knows.
 * @returns the URL with the new password
 */
export async function renewPassword(folder: string, port: number): Promise<string> {
  const [current, next] = [join(folder, 'password'), join(folder, 'password.next')]
  const urlOf = async (file: string) =>
    `postgresql://postgres:${await readFile(file, 'utf8')}@127.0.0.1:${port}/postgres`
  const client = await login(await urlOf(current)).catch(async (error: Error) => {
    const interrupted = await login(await urlOf(next)).catch(() => Promise.reject(error))
    await rename(next, current)
    return interrupted
  })
  try {
    const password = randomBytes(24).toString('base64url')
    await writeFile(next, password, { mode: 0o600 })
    await client.query(`alter role postgres password '${password}'`)
    await rename(next, current)
    await writeFile(join(folder, SERVER), await serverOf(folder), { mode: 0o600 })
    return await urlOf(current)
  } finally {
    await client.end()
  }
}

async function login(connectionString: string): Promise<ProvenClient> {
  const client = new ProvenClient({ connectionString, connectionTimeoutMillis: 3000 })
  client.on('error', () => {})
  await client.connect()
  return client
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
  const client = new ProvenClient({ connectionString, connectionTimeoutMillis: 3000 })
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
