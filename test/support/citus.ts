import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chown, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Kysely, PostgresDialect, sql } from 'kysely'
import pg from 'pg'
import { migrateToLatest } from '../../migrations/index.ts'
import { prepareRights } from '../../src/operator/rights.ts'
import { OperatorError } from '../../src/operator-error.ts'
import type { Tables } from '../../src/postgres/tables.ts'
import { chooseAccount } from '../../tools/embedded-postgres/account.ts'
import { freePort } from '../../tools/embedded-postgres/free-port.ts'
import { until } from './until.ts'

/** One PostgreSQL server of the cluster. */
export interface CitusNode {
  port: number
  /** Connection string of a superuser for the database `postgres`. */
  url: string
  start(): Promise<void>
  /** Fast shutdown: connections break. */
  stop(): Promise<void>
}

/** Coordinator and two workers. All logins of this machine are trusted. */
export interface Citus {
  /** Connection string of a superuser for the database `postgres` of the coordinator. */
  url: string
  coordinator: CitusNode
  workers: CitusNode[]
  stop(): Promise<unknown>
}

/** Programs of a PostgreSQL with Citus, such as /usr/lib/postgresql/15/bin. */
export const citusPrograms = process.env.TEST_CITUS

const FLAGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  shared_preload_libraries: 'citus',
  // To move shards while they are in use.
  wal_level: 'logical',
  max_connections: 300,
  // One of Citus for each database.
  max_worker_processes: 40,
  fsync: 'off',
  full_page_writes: 'off',
  shared_buffers: '64MB',
}

export async function startCitus(): Promise<Citus> {
  if (!existsSync(join(citusPrograms ?? '', 'initdb')))
    throw new OperatorError(
      'TEST_CITUS must be the folder of the programs of a PostgreSQL with Citus.',
    )
  const folder = await mkdtemp(join(tmpdir(), 'citus-'))
  const nodes = await Promise.all(['coordinator', 'a', 'b'].map((name) => createNode(folder, name)))
  const stop = async () => {
    await Promise.all(nodes.map((node) => node.stop()))
    await rm(folder, { recursive: true })
  }
  const [coordinator, ...workers] = nodes as [CitusNode, ...CitusNode[]]
  const { port } = coordinator
  // Test databases find the workers in this one.
  await joinNodes('postgres', [port, ...workers.map((worker) => worker.port)])
  return { url: urlOf(port, 'postgres'), coordinator, workers, stop }
}

const urlOf = (port: number, name: string) => `postgresql://postgres@127.0.0.1:${port}/${name}`

async function createNode(folder: string, name: string): Promise<CitusNode> {
  const account = await chooseAccount(undefined)
  if (account.owner) await chown(folder, account.owner.uid, account.owner.gid)
  const data = join(folder, name)
  const program = (tool: string, args: string[]): [string, string[]] => {
    const path = join(citusPrograms ?? '', tool)
    // The kernel ends a server with this process.
    const line = [...account.prefix, 'setpriv', '--pdeathsig', 'QUIT', '--', path, ...args]
    return [line[0] ?? '', line.slice(1)]
  }
  const options = { cwd: '/', ...account.owner }
  const access = ['--username=postgres', '--auth=trust', '--encoding=UTF8', '--locale=C.UTF-8']
  const flags = [...access, '--no-sync', '--no-instructions', `--pgdata=${data}`]
  await promisify(execFile)(...program('initdb', flags), options)
  const port = await freePort()
  const settings = Object.entries({ ...FLAGS, port }).flatMap((pair) => ['-c', pair.join('=')])
  let server: ChildProcess | undefined
  const responds = () =>
    onNode(port, 'postgres', 'select').then(
      () => true,
      () => false,
    )
  const node: CitusNode = {
    port,
    url: urlOf(port, 'postgres'),
    start: async () => {
      server = spawn(...program('postgres', ['-D', data, ...settings]), {
        stdio: 'ignore',
        ...options,
      })
      await until('the node of Citus responds', responds)
    },
    stop: async () => {
      if (server === undefined || server.exitCode !== null) return
      const exited = once(server, 'exit')
      server.kill('SIGINT')
      await exited
    },
  }
  await node.start()
  return node
}

/**
 * Creates a database on each node, with the newest schema, distributed by docs/reference/citus.sql.
 * @param workers number of workers that get shards; all by default
 */
export async function createCitusDatabase(
  coordinator: string,
  name: string,
  workers?: number,
): Promise<void> {
  const ports = await createEmptyCitusDatabase(coordinator, name, workers)
  const pool = new pg.Pool({ connectionString: urlOf(ports[0] ?? 0, name), max: 1 })
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) })
  await migrateToLatest(db)
  await prepareRights(db, () => {})
  const script = await readFile(new URL('../../docs/reference/citus.sql', import.meta.url), 'utf8')
  await db.transaction().execute((transaction) => sql.raw(script).execute(transaction))
  await db.destroy()
}

/** Creates a database without tables on each node. @returns the ports of the nodes, first that of the coordinator */
export async function createEmptyCitusDatabase(
  coordinator: string,
  name: string,
  workers?: number,
): Promise<number[]> {
  const ports = (await portsOf(coordinator)).slice(0, workers && workers + 1)
  await onEachNode(coordinator, `create database ${name}`)
  await joinNodes(name, ports)
  return ports
}

/** Creates a database that can be cloned on each node: the clones know the nodes and their shards. */
export async function createCitusTemplate(coordinator: string, name: string): Promise<void> {
  await createCitusDatabase(coordinator, name)
  // PostgreSQL clones a database without sessions. Citus keeps some open.
  await onEachNode(coordinator, `alter database ${name} allow_connections false`)
  const sessions = `select pg_terminate_backend(pid, 10000) from pg_stat_activity`
  await onEachNode(coordinator, `${sessions} where datname = '${name}'`)
}

/** Runs a statement on each node at the same time, in the database `postgres`. */
export async function onEachNode(coordinator: string, statement: string): Promise<void> {
  const ports = await portsOf(coordinator)
  await Promise.all(ports.map((port) => onNode(port, 'postgres', statement)))
}

/** Each attempt waits 5 s for the sessions that it ends. */
const DROP_ATTEMPTS = 6

/**
 * Drops a database on each node that has it. A process of Citus opens a new session in the database at any time, also
 * while PostgreSQL ends the others: the statement then fails, and is repeated.
 */
export async function dropOnEachNode(coordinator: string, name: string): Promise<void> {
  const ports = await portsOf(coordinator)
  await Promise.all(ports.map((port) => dropOnNode(port, name)))
}

async function dropOnNode(port: number, name: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await onNode(port, 'postgres', `drop database if exists ${name} with (force)`)
      return
    } catch (error) {
      const isInUse = (error as pg.DatabaseError).code === '55006'
      if (!isInUse || attempt === DROP_ATTEMPTS) throw error
    }
  }
}

async function joinNodes(name: string, ports: number[]): Promise<void> {
  for (const port of ports) await onNode(port, name, 'create extension citus')
  const [first = 0, ...workers] = ports
  await onNode(first, name, `select citus_set_coordinator_host('127.0.0.1', ${first})`)
  for (const port of workers)
    await onNode(first, name, `select citus_add_node('127.0.0.1', ${port})`)
}

async function portsOf(coordinator: string): Promise<number[]> {
  const port = Number(new URL(coordinator).port)
  const rows = await onNode(port, 'postgres', 'select nodeport from pg_dist_node order by groupid')
  return rows.map(({ nodeport }) => Number(nodeport))
}

async function onNode(port: number, name: string, statement: string) {
  const client = new pg.Client({ connectionString: urlOf(port, name) })
  await client.connect()
  const result = client.query<Record<string, unknown>>(statement)
  return (await result.finally(() => client.end())).rows
}
