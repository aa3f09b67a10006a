import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import { migrateToLatest } from '../../migrations/index.ts'
import { startOverTcp } from '../../tools/embedded-postgres/tcp.ts'
import { parentOf } from '../servers/process-usage.ts'
import { programsOfMachine, startMachinePostgres } from './machine-postgres.ts'

export interface PostgresServer {
  /** URL of a superuser, who may create databases. */
  url: string
  /** Where the server is from, for the page. */
  origin: string
}

export interface BenchDatabase {
  server: PostgresServer
  /** URL of the owner of the tables, who bypasses row-level security; for the compared servers. */
  ownerUrl: string
  /** URL of the role of the service. */
  serviceUrl: string
  owner: pg.Pool
  /** Process id of the server; undefined on another machine. */
  pid: number | undefined
}

/** Settings of a server that the bench starts. */
const SETTINGS = {
  shared_buffers: `${Math.round(totalmem() / 4 / 2 ** 20)}MB`,
  effective_cache_size: `${Math.round((totalmem() * 3) / 4 / 2 ** 20)}MB`,
  max_wal_size: '8GB',
  max_connections: '300',
}

const CHANGED = Object.entries(SETTINGS)
  .map(([name, value]) => `${name} = ${value}`)
  .join(', ')

/**
 * Uses the server at BENCH_DATABASE_URL. Else starts the PostgreSQL of this machine, as production runs it, and stops it
 * afterwards. Without one, starts the embedded one: its build is slower.
 */
export async function withPostgres<T>(use: (server: PostgresServer) => Promise<T>): Promise<T> {
  const given = process.env.BENCH_DATABASE_URL
  if (given) return use({ url: given, origin: 'BENCH_DATABASE_URL' })
  const programs = await programsOfMachine()
  if (programs !== undefined) {
    const server = await startMachinePostgres(programs, SETTINGS)
    const origin = `${programs}, ${CHANGED}`
    return await use({ url: server.url, origin }).finally(() => server.stop())
  }
  const folder = await mkdtemp(join(tmpdir(), 'bench-'))
  const server = await startOverTcp(folder, SETTINGS)
  try {
    return await use({ url: server.url, origin: `embedded, ${CHANGED}` })
  } finally {
    await server.stop()
    await rm(folder, { recursive: true })
  }
}

let databases = 0

/** Creates a migrated database, and drops it afterwards. */
export async function withDatabase<T>(
  server: PostgresServer,
  use: (database: BenchDatabase) => Promise<T>,
): Promise<T> {
  databases += 1
  const name = `bench_${process.pid}_${databases}`
  await asAdmin(server, `create database ${name}`)
  const ownerUrl = changeUrl(server.url, { pathname: `/${name}` })
  const owner = new pg.Pool({ connectionString: ownerUrl, max: 4 })
  try {
    await migrateToLatest(new Kysely({ dialect: new PostgresDialect({ pool: owner }) }))
    await owner.query(`alter role investment_service login password 'bench'`)
    const { rows } = await owner.query<{ pid: number }>('select pg_backend_pid() as pid')
    const service = { username: 'investment_service', password: 'bench' }
    const serviceUrl = changeUrl(ownerUrl, service)
    return await use({ server, ownerUrl, serviceUrl, owner, pid: parentOf(rows[0]?.pid ?? 0) })
  } finally {
    await owner.end()
    await asAdmin(server, `drop database ${name} with (force)`)
  }
}

async function asAdmin({ url }: PostgresServer, statement: string): Promise<void> {
  const client = new pg.Client(url)
  await client.connect()
  await client.query(statement).finally(() => client.end())
}

export function changeUrl(url: string, parts: Partial<URL>): string {
  return Object.assign(new URL(url), parts).href
}
