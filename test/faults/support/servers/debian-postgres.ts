import { execFile } from 'node:child_process'
import { chown, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import type { Test } from 'tap'
import type { Account } from '../../../../tools/embedded-postgres/account.ts'
import { freePort } from '../../../../tools/embedded-postgres/free-port.ts'
import { operatorHere } from '../../../operator/operator-process.ts'
import { until } from '../../../support/until.ts'
import { notRoot, type Program, startProgram } from '../processes/program.ts'

/** A server of Debian's package postgresql-15, in a folder of its own. */
export interface DebianPostgres {
  /** Connection string of a superuser. */
  url: string
  port: number
  start(): Promise<void>
  /** The newest part of its log, since its last start. */
  said(): string
  /** A fast shutdown: open transactions are rolled back. */
  stop(): Promise<void>
  /** Makes it hang: it takes connections and answers nobody until it is resumed. */
  freeze(): Promise<void>
  resume(): Promise<void>
}

type Settings = Record<string, string | number>

const binaries = '/usr/lib/postgresql/15/bin'
const PASSWORD = 'only-in-this-test'

/** A new server, started. It writes to the disk without waiting for it. */
export async function startDebianPostgres(t: Test, settings: Settings = {}) {
  const place = await newPlace(t)
  const { account, folder } = place
  const access = ['--username=postgres', '--auth=scram-sha-256', `--pwfile=${folder}/password`]
  const flags = ['--encoding=UTF8', '--locale=C.UTF-8', '--no-sync', '--no-instructions']
  await writeFile(`${folder}/password`, PASSWORD)
  await runTool(account, 'initdb', [`--pgdata=${folder}/data`, ...access, ...flags])
  return await startIn(t, place, { wal_level: 'replica', ...settings })
}

/** A hot standby that streams from a primary, made of a base backup of it. */
export async function startStandby(t: Test, primary: DebianPostgres, settings: Settings = {}) {
  const place = await newPlace(t)
  const source = `${primary.url}?application_name=standby`
  const backup = ['--write-recovery-conf', '--checkpoint=fast', '--no-sync', '--wal-method=stream']
  await runTool(place.account, 'pg_basebackup', [
    `--dbname=${source}`,
    `--pgdata=${place.folder}/data`,
    ...backup,
  ])
  return await startIn(t, place, settings)
}

/** Everything of the schema and a login for the service, as an operator makes them; returns its URL. */
export async function migrateFor(url: string): Promise<string> {
  const environment = { DATABASE_URL: url, SERVICE_DATABASE_PASSWORD: PASSWORD }
  const { code, stderr } = await operatorHere(['migrate'], environment)
  if (code !== 0) throw new Error(stderr)
  return Object.assign(new URL(url), { username: 'investment_service', password: PASSWORD }).href
}

/** The same connection string for another server. */
export function onPort(url: string, port: number): string {
  const other = new URL(url)
  other.port = String(port)
  return other.href
}

interface Place {
  folder: string
  account: Account
}

async function newPlace(t: Test): Promise<Place> {
  const account = await notRoot()
  const folder = await mkdtemp(join(tmpdir(), 'postgres-15-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  if (account.owner) await chown(folder, account.owner.uid, account.owner.gid)
  return { folder, account }
}

async function runTool({ prefix, owner }: Account, tool: string, args: string[]) {
  const [first = '', ...rest] = [...prefix, join(binaries, tool), ...args]
  await promisify(execFile)(first, rest, { cwd: '/', ...owner }).catch((error) => {
    const missing = /No such file|ENOENT/.test(`${error.code} ${error.stderr}`)
    throw missing ? new Error(`${tool} is missing: run \`.ci/packages postgresql-15\``) : error
  })
}

const fast = { fsync: 'off', full_page_writes: 'off', shared_buffers: '32MB', autovacuum: 'off' }

async function startIn(t: Test, { folder, account }: Place, settings: Settings) {
  const port = await freePort()
  const url = `postgresql://postgres:${PASSWORD}@127.0.0.1:${port}/postgres`
  const own = { port, listen_addresses: '127.0.0.1', unix_socket_directories: '' }
  const all: Settings = { ...own, ...fast, ...settings }
  let program: Program | undefined
  const start = async () => {
    const flags = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])
    program = await startProgram(t, {
      command: join(binaries, 'postgres'),
      package: 'postgresql-15',
      args: ['-D', `${folder}/data`, ...flags],
      account,
      lastSignal: 'SIGQUIT',
    })
    await until('PostgreSQL answers', () => answers(url))
  }
  const server: DebianPostgres = {
    url,
    port,
    start,
    said: () => program?.said() ?? '',
    stop: async () => {
      await program?.end('SIGINT')
    },
    freeze: () => signalAll(program, 'SIGSTOP'),
    resume: () => signalAll(program, 'SIGCONT'),
  }
  await start()
  return server
}

const answers = (url: string) =>
  firstValue(url, 'select').then(
    () => true,
    () => false,
  )

/** What the sessions of a role begin with in this database. */
export function settingsOf(url: string, role: string): Promise<unknown> {
  return firstValue(
    url,
    `select array_agg(setting order by setting) from pg_db_role_setting, unnest(setconfig) setting
     where setrole = '${role}'::regrole and setdatabase =
       (select oid from pg_database where datname = current_database())`,
  )
}

/** Runs a statement in a session of its own, again where a standby cancels it; the first value. */
export async function firstValue(url: string, statement: string): Promise<unknown> {
  return await firstValueNow(url, statement).catch((error) => {
    if (error.code === '40001') return firstValue(url, statement)
    throw error
  })
}

async function firstValueNow(connectionString: string, statement: string): Promise<unknown> {
  const client = new pg.Client({ connectionString })
  // A session may be cut while it has nothing to do; whoever asks is told by the statement's own error.
  client.on('error', () => {})
  await client.connect()
  const query = client.query({ text: statement, rowMode: 'array' })
  const { rows } = await query.finally(() => client.end())
  return rows[0]?.[0]
}

async function signalAll(program: Program | undefined, signal: NodeJS.Signals) {
  const pid = Number(program?.process.pid)
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')
  for (const each of [pid, ...children.trim().split(' ').map(Number)]) process.kill(each, signal)
}
