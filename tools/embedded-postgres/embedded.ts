import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { open, readFile, stat } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { OperatorError } from '../../src/operator-error.ts'
import { type Cluster, openCluster } from './cluster.ts'
import { dropStaleLock, findRunning, isReady, urlFrom } from './running.ts'

export type EmbeddedDatabase = {
  /** A connection string with its password, for this machine only. */
  url: string
  /** Ends it cleanly: open transactions are rolled back, all else is on disk when it returns. */
  stop(): Promise<void>
}

export type EmbeddedOptions = {
  /** Settings of postgresql.conf that differ from the defaults, e.g. `{ fsync: 'off' }`. */
  settings?: Record<string, string>
}

/** Another process runs the database of this folder already; `url` leads to it. */
export class EmbeddedDatabaseInUse extends OperatorError {
  // Private, because whoever logs an error logs its fields, and the URL holds a password.
  readonly #url: string
  constructor(dataDir: string, url: string) {
    super(`The embedded database in ${dataDir} is in use: another process has started it.`)
    this.name = 'EmbeddedDatabaseInUse'
    this.#url = url
  }
  get url() {
    return this.#url
  }
}

/**
 * Starts the embedded PostgreSQL on a data folder, which is made when it is not there, on a free
 * port of 127.0.0.1. Whatever way this process ends, the database is shut down cleanly.
 * @throws EmbeddedDatabaseInUse when it runs already
 */
export async function startEmbedded(
  dataDir: string,
  options: EmbeddedOptions = {},
): Promise<EmbeddedDatabase> {
  const folder = resolve(dataDir)
  const cluster = await openCluster(folder)
  const patience = Date.now() + 15_000
  for (;;) {
    const running = await findRunning(folder)
    if (running) throw new EmbeddedDatabaseInUse(folder, running)
    const { started, fault } = await tryStart(cluster, options.settings ?? {})
    if (started) return started
    // The one that ran before may be on its way down, and a free port may be taken by now.
    const passing = /lock file .* already exists|could not bind/.test(fault)
    if (!passing || Date.now() > patience)
      throw new Error(`PostgreSQL did not start on ${folder}: ${fault}`)
    await sleep(100)
  }
}

type Attempt = { started?: EmbeddedDatabase; fault: string }

async function tryStart(cluster: Cluster, settings: Record<string, string>): Promise<Attempt> {
  const { folder } = cluster
  const log = join(folder, 'log')
  await dropStaleLock(folder)
  const logStart = (await stat(log)).size
  const port = await freePort()
  const keeper = await spawnKept(cluster, log, { ...settings, port: String(port) })
  while (keeper.exitCode === null && keeper.signalCode === null) {
    const url = (await isReady(folder, port)) ? await urlFrom(folder) : undefined
    if (url) return { started: { url, stop: () => stopKept(keeper) }, fault: '' }
    await sleep(10)
  }
  const said = (await readFile(log)).subarray(logStart).toString()
  return { fault: /FATAL: +(.*)/.exec(said)?.[1] ?? `see ${log}` }
}

/**
 * The shell waits for its standard input to end, which happens when this process ends, by kill -9
 * too, and then asks for a fast shutdown. In a process group of its own, so that Ctrl-C reaches
 * only this process.
 */
const keep = `
  exec 3<&0
  "$@" 3<&- </dev/null &
  server=$!
  stop() { kill -INT $server 2>/dev/null; }
  trap stop INT TERM HUP
  { cat <&3 >/dev/null; stop; } &
  while kill -0 $server 2>/dev/null; do wait $server; done`

async function spawnKept(
  { folder, account, binaries }: Cluster,
  log: string,
  settings: Record<string, string>,
): Promise<ChildProcess> {
  const own = { listen_addresses: '127.0.0.1', unix_socket_directories: '' }
  const flags = Object.entries({ ...own, ...settings }).map(([name, value]) => `--${name}=${value}`)
  const server = [...account.prefix, binaries.postgres, '-D', join(folder, 'data'), ...flags]
  const output = await open(log, 'a')
  const keeper = spawn('sh', ['-c', keep, 'keep', ...server], {
    stdio: ['pipe', output.fd, output.fd],
    detached: true,
    cwd: folder,
    ...account.owner,
  })
  await once(keeper, 'spawn')
  await output.close()
  return keeper
}

async function stopKept(keeper: ChildProcess) {
  if (keeper.exitCode !== null || keeper.signalCode !== null) return
  const exit = once(keeper, 'exit')
  keeper.stdin?.end()
  await exit
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  if (address === null || typeof address === 'string') throw new Error('No free port.')
  return address.port
}
