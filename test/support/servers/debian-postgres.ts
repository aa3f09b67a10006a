import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chown, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import type { Test } from 'tap'
import type { Account } from '../../../tools/embedded-postgres/account.ts'
import { freePort } from '../../../tools/embedded-postgres/free-port.ts'
import { operatorHere } from '../operator-process.ts'
import { notRoot, type Program, startProgram } from '../processes/program.ts'
import { until } from '../until.ts'

/** Server of Debian's package postgresql-15. */
export interface DebianPostgres {
  /** Connection string of a superuser. */
  url: string
  port: number
  /** Its data folder. */
  data: string
  start(): Promise<void>
  /** Newest part of its log since the last start. */
  log(): string
  /** Fast shutdown: PostgreSQL rolls back open transactions. */
  stop(): Promise<void>
  /** Restarts it as a standby of another server, which was its standby. */
  follow(primary: DebianPostgres): Promise<void>
  /** Makes it hang: it accepts connections, but does not respond before it is resumed. */
  freeze(): Promise<void>
  /** Makes its present processes hang. The postmaster accepts connections, and starts new ones. */
  freezeBackends(): Promise<void>
  resume(): Promise<void>
}

type Settings = Record<string, string | number>

const BINARIES = '/usr/lib/postgresql/15/bin'
const PASSWORD = 'only-in-this-test'

/**
 * Starts a server with a new cluster. It does not wait for its disk.
 *
 * The first caller of a test run initializes a cluster, and all callers copy it, because initdb takes ten times the
 * processor time of a copy.
 */
export async function startDebianPostgres(t: Test, settings: Settings = {}) {
  const directory = await newDirectory(t)
  await copyCluster(await initializedCluster(directory.account), directory.folder)
  return await startIn(t, directory, { wal_level: 'replica', ...settings })
}

/** Starts a server with another system identifier than the copies, for a test that needs two different ones. */
export async function startOtherPostgres(t: Test, settings: Settings = {}) {
  const directory = await newDirectory(t)
  await initialize(directory)
  return await startIn(t, directory, { wal_level: 'replica', ...settings })
}

/** Returns the folder of the cluster that is copied, in the temporary folder of the test run. */
async function initializedCluster(account: Account): Promise<string> {
  const kept = join(tmpdir(), 'postgresql-15')
  if (existsSync(kept)) return kept
  const folder = await mkdtemp(`${kept}-`)
  await giveTo(account, folder)
  await initialize({ account, folder })
  // Another process may have made a cluster meanwhile. This one is then removed with the temporary folder.
  await rename(folder, kept).catch((error) => {
    if (!existsSync(kept)) throw error
  })
  return kept
}

async function initialize({ account, folder }: Directory): Promise<void> {
  const access = ['--username=postgres', '--auth=scram-sha-256', `--pwfile=${folder}/password`]
  const flags = ['--encoding=UTF8', '--locale=C.UTF-8', '--no-sync', '--no-instructions']
  await writeFile(`${folder}/password`, PASSWORD)
  await runTool(account, 'initdb', [`--pgdata=${folder}/data`, ...access, ...flags])
}

const copyCluster = (from: string, to: string) =>
  promisify(execFile)('cp', ['--archive', join(from, 'data'), join(to, 'data')])

/** Starts a hot standby from a base backup of the primary. */
export async function startStandby(t: Test, primary: DebianPostgres, settings: Settings = {}) {
  const directory = await newDirectory(t)
  const source = `${primary.url}?application_name=standby`
  const backup = ['--write-recovery-conf', '--checkpoint=fast', '--no-sync', '--wal-method=stream']
  await runTool(directory.account, 'pg_basebackup', [
    `--dbname=${source}`,
    `--pgdata=${directory.folder}/data`,
    ...backup,
  ])
  return await startIn(t, directory, settings)
}

type Prepare = (data: string) => Promise<unknown>

/** Starts a server on the data folder that `prepare` creates. */
export async function startPrepared(t: Test, prepare: Prepare) {
  return await startIn(t, await prepared(t, prepare), {})
}

/** Starts a server that ends by itself. Returns its log. */
export async function logOfEnded(t: Test, prepare: Prepare): Promise<string> {
  const { folder, account } = await prepared(t, prepare)
  const settings = [`port=${await freePort()}`, 'unix_socket_directories=', 'fsync=off']
  const program = await startProgram(t, {
    command: join(BINARIES, 'postgres'),
    package: 'postgresql-15',
    args: ['-D', `${folder}/data`, ...settings.flatMap((setting) => ['-c', setting])],
    account,
    lastSignal: 'SIGQUIT',
  })
  await program.ended()
  return program.output()
}

async function prepared(t: Test, prepare: Prepare): Promise<Directory> {
  const directory = await newDirectory(t)
  await prepare(`${directory.folder}/data`)
  const { owner } = directory.account
  const command = ['-R', `${owner?.uid}:${owner?.gid}`, directory.folder]
  if (owner) await promisify(execFile)('chown', command)
  return directory
}

/** Runs the migrations; returns the connection string of the service. */
export async function migrate(url: string): Promise<string> {
  const environment = { DATABASE_URL: url, SERVICE_DATABASE_PASSWORD: PASSWORD }
  const { code, stderr } = await operatorHere(['migrate'], environment)
  if (code !== 0) throw new Error(stderr)
  return Object.assign(new URL(url), { username: 'investment_service', password: PASSWORD }).href
}

/** Returns a connection string with another port. */
export function onPort(url: string, port: number): string {
  const other = new URL(url)
  other.port = String(port)
  return other.href
}

interface Directory {
  folder: string
  account: Account
}

/** Creates a folder that the servers may write. */
export async function newDirectory(t: Test): Promise<Directory> {
  const account = await notRoot()
  const folder = await mkdtemp(join(tmpdir(), 'postgres-15-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  await giveTo(account, folder)
  return { folder, account }
}

async function giveTo({ owner }: Account, folder: string): Promise<void> {
  if (owner) await chown(folder, owner.uid, owner.gid)
}

async function runTool({ prefix, owner }: Account, tool: string, args: string[]) {
  const [first = '', ...rest] = [...prefix, join(BINARIES, tool), ...args]
  await promisify(execFile)(first, rest, { cwd: '/', timeout: 120_000, ...owner }).catch(
    (error) => {
      const missing = /No such file|ENOENT/.test(`${error.code} ${error.stderr}`)
      throw missing ? new Error(`${tool} is missing: run \`.ci/packages postgresql-15\``) : error
    },
  )
}

const FAST = { fsync: 'off', full_page_writes: 'off', shared_buffers: '32MB', autovacuum: 'off' }

async function startIn(t: Test, { folder, account }: Directory, settings: Settings) {
  const port = await freePort()
  const url = `postgresql://postgres:${PASSWORD}@127.0.0.1:${port}/postgres`
  const address = { port, listen_addresses: '127.0.0.1', unix_socket_directories: '' }
  const all: Settings = { ...address, ...FAST, ...settings }
  let program: Program | undefined
  const start = async () => {
    const flags = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])
    program = await startProgram(t, {
      command: join(BINARIES, 'postgres'),
      package: 'postgresql-15',
      args: ['-D', `${folder}/data`, ...flags],
      account,
      lastSignal: 'SIGQUIT',
    })
    await until('PostgreSQL responds', () => responds(url))
  }
  const postmaster = () => Number(program?.process.pid)
  const server: DebianPostgres = {
    url,
    port,
    data: `${folder}/data`,
    start,
    log: () => program?.output() ?? '',
    stop: async () => {
      await program?.end('SIGINT')
    },
    follow: async (primary) => {
      await server.stop()
      all.primary_conninfo = `${primary.url}?application_name=standby`
      await writeFile(`${folder}/data/standby.signal`, '')
      await start()
    },
    // The postmaster is first, so that it starts no further process.
    freeze: async () => {
      signal(postmaster(), 'SIGSTOP')
      for (const child of await childrenOf(postmaster())) signal(child, 'SIGSTOP')
    },
    freezeBackends: async () => {
      for (const child of await childrenOf(postmaster())) signal(child, 'SIGSTOP')
    },
    // The postmaster is last, because it removes the processes of children that have ended.
    resume: async () => {
      for (const child of await childrenOf(postmaster())) signal(child, 'SIGCONT')
      signal(postmaster(), 'SIGCONT')
    },
  }
  await start()
  return server
}

const responds = (url: string) =>
  firstValue(url, 'select').then(
    () => true,
    () => false,
  )

/** Default settings of a role in this database. */
export function roleSettings(url: string, role: string): Promise<unknown> {
  return firstValue(
    url,
    `select array_agg(setting order by setting) from pg_db_role_setting, unnest(setconfig) setting
     where setrole = '${role}'::regrole and setdatabase =
       (select oid from pg_database where datname = current_database())`,
  )
}

/**
 * Runs a statement over a new connection and returns its first value. Runs it again, up to ten times, if
 * a standby cancels it.
 */
export async function firstValue(url: string, statement: string, tries = 10): Promise<unknown> {
  return await firstValueOnce(url, statement).catch((error) => {
    if (error.code === '40001' && tries > 1) return firstValue(url, statement, tries - 1)
    throw error
  })
}

async function firstValueOnce(connectionString: string, statement: string): Promise<unknown> {
  const limits = { connectionTimeoutMillis: 30_000, query_timeout: 30_000 }
  const client = new pg.Client({ connectionString, ...limits })
  // A connection may break while idle. If a statement is running, its own error reports that.
  client.on('error', () => {})
  await client.connect()
  const query = client.query({ text: statement, rowMode: 'array' })
  const { rows } = await query.finally(() => client.end())
  return rows[0]?.[0]
}

/** Process ids of the children. The file `children` of Linux leaves some out while others end. */
async function childrenOf(parent: number): Promise<number[]> {
  const ids = (await readdir('/proc')).map(Number).filter(Boolean)
  const parents = await Promise.all(
    ids.map(async (id) => {
      const status = await readFile(`/proc/${id}/status`, 'utf8').catch(() => '')
      return Number(/^PPid:\s+(\d+)$/m.exec(status)?.[1])
    }),
  )
  return ids.filter((_, index) => parents[index] === parent)
}

/** Sends a signal to a process, which may have ended. */
function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
