import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { open, readFile, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { OperatorError } from '../../src/operator-error.ts'
import { type Cluster, openCluster } from './cluster.ts'
import { freePort } from './free-port.ts'
import {
  dropStaleLock,
  findRunning,
  isReady,
  renewPassword,
  STARTER,
  starterOf,
} from './running.ts'

export type EmbeddedDatabase = {
  /** Connection string with its password, for this machine only. */
  url: string
  /** Shuts down: open transactions are rolled back, and committed data is on disk. */
  stop(): Promise<void>
  /** Resolves with a sentence if the server ends without a call of `stop`, e.g. by SIGKILL. */
  killed: Promise<string>
}

export type EmbeddedOptions = {
  /** Settings of postgresql.conf that differ from the defaults, e.g. `{ fsync: 'off' }`. */
  settings?: Record<string, string>
}

/** Another process runs the database of this folder; `url` is its connection string. */
export class EmbeddedDatabaseInUse extends OperatorError {
  // Private, because loggers print the fields of an error, and the URL has a password.
  readonly #url: string
  constructor(dataDir: string, url: string, starter: string) {
    super(`The embedded database in ${dataDir} is in use: ${starter} has started it.`)
    this.name = 'EmbeddedDatabaseInUse'
    this.#url = url
  }
  get url() {
    return this.#url
  }
}

/**
 * Starts the embedded PostgreSQL on a free port of 127.0.0.1, and creates the data folder if needed.
 * The database shuts down cleanly when this process ends, even by SIGKILL.
 * @throws EmbeddedDatabaseInUse if it runs already
 */
export async function startEmbedded(
  dataDir: string,
  options: EmbeddedOptions = {},
): Promise<EmbeddedDatabase> {
  const folder = resolve(dataDir)
  const cluster = await openCluster(folder)
  const deadline = Date.now() + 15_000
  for (;;) {
    const running = await findRunning(folder)
    if (running) throw new EmbeddedDatabaseInUse(folder, running, await starterOf(cluster.folder))
    const { started, error } = await tryStart(cluster, options.settings ?? {})
    if (started) return started
    // An earlier server may still be shutting down, or another program may have taken the port.
    const isTemporary = temporary.test(error)
    if (!isTemporary || Date.now() > deadline)
      throw new Error(`PostgreSQL did not start on ${folder}: ${error}`)
    await sleep(100)
  }
}

const temporary = /lock file .* (already exists|is empty)|could not bind|still in use/

type StartResult = { started?: EmbeddedDatabase; error: string }

async function tryStart(cluster: Cluster, settings: Record<string, string>): Promise<StartResult> {
  const { folder } = cluster
  const log = join(folder, 'log')
  await dropStaleLock(folder)
  const logStart = (await stat(log)).size
  const port = await freePort()
  const watchdog = await spawnServer(cluster, log, { ...settings, port: String(port) })
  while (isRunning(watchdog)) {
    if (await isReady(folder, port)) {
      const url = await renewPassword(folder, port).catch(async (error) => {
        await stopServer(watchdog)
        throw error
      })
      const killed = whenKilled(
        watchdog,
        `The embedded PostgreSQL was killed: start again (${log}).`,
      )
      return { started: { url, stop: () => stopServer(watchdog), killed }, error: '' }
    }
    await sleep(10)
  }
  const output = (await readFile(log)).subarray(logStart).toString()
  // Another server that is shutting down writes to the same log.
  const errors = Array.from(output.matchAll(/FATAL: +(.*)/g), ([, message]) => message)
  return { error: errors.join('; ') || `see ${log}` }
}

/**
 * Shell script that runs PostgreSQL. Its standard input ends with this process, even after SIGKILL; the
 * script then sends SIGINT, a fast shutdown.
 */
const watchdogScript = `
  exec 3<&0
  "$@" 3<&- </dev/null &
  server=$!
  stop() { kill -INT $server 2>/dev/null; }
  trap stop INT TERM HUP
  { cat <&3 >/dev/null; stop; } &
  while kill -0 $server 2>/dev/null; do wait $server; done`

/** Starts PostgreSQL. @returns its watchdog */
async function spawnServer(
  { folder, account, binaries }: Cluster,
  log: string,
  settings: Record<string, string>,
): Promise<ChildProcess> {
  const cluster_name = `${STARTER} ${process.pid}`
  const sockets = { listen_addresses: '127.0.0.1', unix_socket_directories: '' }
  const all = { ...sockets, cluster_name, ...settings }
  const flags = Object.entries(all).map(([name, value]) => `--${name}=${value}`)
  const server = [...account.prefix, binaries.postgres, '-D', join(folder, 'data'), ...flags]
  const output = await open(log, 'a')
  const watchdog = spawn('sh', ['-c', watchdogScript, 'watchdog', ...server], {
    stdio: ['pipe', output.fd, output.fd],
    // A new process group: Ctrl-C reaches this process only.
    detached: true,
    cwd: folder,
    ...account.owner,
  })
  await once(watchdog, 'spawn')
  await output.close()
  return watchdog
}

function whenKilled(watchdog: ChildProcess, sentence: string): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  watchdog.once('exit', () => {
    if (!watchdog.stdin?.writableEnded) resolve(sentence)
  })
  return promise
}

async function stopServer(watchdog: ChildProcess) {
  if (!isRunning(watchdog)) return
  const exit = once(watchdog, 'exit')
  watchdog.stdin?.end()
  await exit
}

const isRunning = ({ exitCode, signalCode }: ChildProcess) =>
  exitCode === null && signalCode === null
