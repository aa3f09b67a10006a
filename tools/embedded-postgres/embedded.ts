import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { open, readFile, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { OperatorError } from '../../src/operator-error.ts'
import { type Cluster, openCluster } from './cluster.ts'
import { dropStaleLocks, findRunning, isReady, START, STARTER, starterOf } from './running.ts'
import { DEFAULT_PORT, socketUrl } from './socket.ts'

export type EmbeddedDatabase = {
  /** Connection string of the superuser, through the Unix socket in the folder of the data. */
  url: string
  /** Shuts down: open transactions are rolled back, and committed data is on disk. */
  stop(): Promise<void>
  /** Resolves with a sentence if the server ends without a call of `stop`, e.g. by SIGKILL. */
  killed: Promise<string>
}

/** Another process runs the database of this folder; `url` is its connection string. */
export class EmbeddedDatabaseInUse extends OperatorError {
  readonly url: string
  constructor(dataDir: string, url: string, starter: string) {
    super(
      `The embedded database in ${dataDir} is in use: ${starter} has started it. Stop it, or set DATA_DIR to another folder.`,
    )
    this.name = 'EmbeddedDatabaseInUse'
    this.url = url
  }
}

/**
 * Starts the embedded PostgreSQL, and creates the data folder if needed. It listens on a Unix socket in its own folder,
 * which only its owner can enter, and on no port. It shuts down cleanly when this process ends, even by SIGKILL.
 * @param settings settings of postgresql.conf that differ from the defaults, e.g. `{ fsync: 'off' }`
 * @throws EmbeddedDatabaseInUse if it runs already
 */
export async function startEmbedded(
  dataDir: string,
  settings: Record<string, string> = {},
): Promise<EmbeddedDatabase> {
  const folder = resolve(dataDir)
  const cluster = await openCluster(folder)
  const deadline = Date.now() + 15_000
  for (;;) {
    const running = await findRunning(folder)
    if (running) throw new EmbeddedDatabaseInUse(folder, running, await starterOf(cluster.folder))
    const { started, error } = await tryStart(cluster, settings)
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
  const { port = DEFAULT_PORT } = settings
  const url = await socketUrl(folder, port)
  await dropStaleLocks(folder, port)
  const logStart = (await stat(log)).size
  const start = randomUUID()
  const watchdog = await spawnServer(cluster, log, { ...settings, [START]: start })
  while (isRunning(watchdog)) {
    if (await isReady(folder, start)) {
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
  const sockets = {
    listen_addresses: '',
    // The parent of the folder in which PostgreSQL works. An absolute path may be too long for a socket.
    unix_socket_directories: '..',
    unix_socket_permissions: '0700',
  }
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
