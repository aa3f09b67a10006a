import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { EmbeddedDatabaseInUse, startEmbedded } from './embedded.ts'
import { findRunning } from './running.ts'

/** Advisory lock: shared by the processes that use the server, exclusive for the one that stops it. */
const IN_USE = 7_310_453
const PAUSE_MS = 100
const GIVE_UP_MS = 15_000

/**
 * Runs `use` with the URL of the embedded database of a data folder. Starts the database if it does not
 * run. The process that has started it waits for the others, and then stops it.
 * @param onWait receives a sentence before this process waits for others
 */
export async function withEmbedded<T>(
  dataDir: string,
  use: (url: string) => Promise<T>,
  onWait: (sentence: string) => void,
): Promise<T> {
  const deadline = Date.now() + GIVE_UP_MS
  for (;;) {
    const running = await findRunning(dataDir)
    const user = running && (await join(running, Date.now() > deadline))
    if (user) return await use(running).finally(() => user.end())
    const started = running ? undefined : await startUnlessRunning(dataDir)
    if (started) {
      const stop = () => waitForOthers(started.url, onWait).finally(started.stop)
      return await use(started.url).finally(stop)
    }
    await sleep(PAUSE_MS)
  }
}

async function startUnlessRunning(dataDir: string) {
  try {
    return await startEmbedded(dataDir)
  } catch (error) {
    if (error instanceof EmbeddedDatabaseInUse) return undefined
    throw error
  }
}

/**
 * Keeps a server from being stopped, until the returned client ends.
 * @returns undefined if the server is stopping
 */
async function join(url: string, isLast: boolean): Promise<pg.Client | undefined> {
  const client = open(url)
  try {
    await client.connect()
    const lock = `select pg_try_advisory_lock_shared(${IN_USE}) as locked`
    const { rows } = await client.query<{ locked: boolean }>(lock)
    if (rows[0]?.locked) return client
    await client.end()
  } catch (error) {
    if (isLast) throw error
  }
  return undefined
}

/** Waits until no other process uses the server, and locks it. The lock ends with the server. */
async function waitForOthers(url: string, onWait: (sentence: string) => void): Promise<void> {
  const client = open(url)
  try {
    await client.connect()
    const lock = `select pg_try_advisory_lock(${IN_USE}) as locked`
    for (let attempt = 1; ; attempt += 1) {
      const { rows } = await client.query<{ locked: boolean }>(lock)
      if (rows[0]?.locked) return
      if (attempt === 1) {
        onWait('Another process uses the embedded database: waiting for it. Ctrl-C stops both.')
      }
      await sleep(PAUSE_MS)
    }
  } catch {
    // The server has ended already.
  }
}

function open(connectionString: string): pg.Client {
  const client = new pg.Client({ connectionString, connectionTimeoutMillis: 10_000 })
  // The server may stop while this connection is idle; without a listener, the process would end.
  client.on('error', () => {})
  return client
}
