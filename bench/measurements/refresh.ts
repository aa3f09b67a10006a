import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { tokenHash } from '../../src/postgres/tokens.ts'
import {
  CONNECTIONS,
  connectionToken,
  fillSmall,
  keyOf,
  LARGE,
  ROWS_EACH,
  settle,
} from '../data/data-set.ts'
import { type BenchDatabase, type PostgresServer, withDatabase } from '../data/database.ts'
import { fillRefreshed } from '../data/refreshed.ts'
import { refreshLists } from '../data/rows.ts'
import { generateLoad, type LoadResult } from '../load/load-generator.ts'
import { dailySyncs } from '../load/loads.ts'
import { percentile } from '../load/statistics.ts'
import { digits, table } from '../report/tables.ts'
import { withServers } from '../servers/fixture.ts'
import { cpuOf, cpuOfFamily, peakMemory } from '../servers/process-usage.ts'
import { startService } from '../servers/targets.ts'

const MAIN = join(import.meta.dirname, '../../src/operator/main.ts')
/** Time of the daily syncs, alone and beside the refreshes. */
const LOAD_MS = 5_000
/** Number of connections above which SQL writes the first rows. */
const MOST = 100_000
/** Clients that run their daily sync meanwhile. */
const CLIENTS = 4

/**
 * Measures refreshes of 13 rows, one of ten rows new, and daily syncs while they run.
 * @param connections that are refreshed once in each part
 */
export async function measureRefresh(server: PostgresServer, connections: number) {
  return withDatabase(server, async (database) => {
    await fillSmall(database.owner)
    await addConnections(database, connections)
    const parts: (string | number | undefined)[][] = []
    if (connections > MOST) {
      const numbers = Array.from({ length: connections }, (_, index) => keyOf(numberOf(index)))
      await fillRefreshed(database.owner, numbers)
    } else parts.push(await run(database, 'first refresh: all rows new', connections, 0))
    await settle(database.owner)
    const size = await sizeOf(database)
    parts.push(await run(database, 'a day: one of ten rows new', connections, 1))
    const sizes = [size, await sizeOf(database)]
    if (connections <= MOST) parts.push(await run(database, 'the same lines again', connections, 1))
    const begin = performance.now()
    await database.owner.query('vacuum')
    const vacuum = ((performance.now() - begin) / 1000).toFixed(1)
    const columns = [
      `Refreshes of ${connections.toLocaleString('en')} connections`,
      ...[
        'refreshes/s',
        'CPU ms, Node.js',
        'CPU ms, PostgreSQL',
        'WAL kB',
        'rows of catalogs',
        'peak MB',
      ],
    ]
    const [before, after] = sizes.map((bytes) => `${digits(bytes / 2 ** 20)} MiB`)
    const sentence = `The database grew from ${before} to ${after} on the day. VACUUM took ${vacuum} s.`
    return [table(columns, parts), sentence, await measureReaders(database, connections)].join(
      '\n\n',
    )
  })
}

async function sizeOf({ owner }: BenchDatabase): Promise<number> {
  const { rows } = await owner.query('select pg_database_size(current_database())::float8 as size')
  return rows[0].size
}

/** Numbers of the connections follow those of the data set. */
const numberOf = (index: number) => LARGE + 1 + index

async function addConnections({ owner }: BenchDatabase, count: number): Promise<void> {
  for (let from = 0; from < count; from += 10_000) {
    const numbers = Array.from({ length: Math.min(10_000, count - from) }, (_, index) =>
      numberOf(from + index),
    )
    await owner.query(
      `insert into connection (id, app_id, token_hash)
       select c.id, app.id, c.hash from unnest($1::bigint[], $2::bytea[]) c (id, hash), app
       where app.name = 'app-0'`,
      [numbers.map(keyOf), numbers.map((number) => tokenHash(connectionToken(number)))],
    )
  }
}

async function run(database: BenchDatabase, name: string, connections: number, day: number) {
  const before = await counters(database)
  const { seconds, cpu, memory } = await refresh(database, connections, day)
  const after = await counters(database)
  return [
    name,
    digits(connections / seconds),
    digits(cpu / connections),
    digits((after.cpu - before.cpu) / connections),
    digits((after.wal - before.wal) / 1000 / connections),
    after.catalogs - before.catalogs,
    memory.toFixed(0),
  ]
}

async function counters({ owner, pid = 0 }: BenchDatabase) {
  const { rows } = await owner.query(
    `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 as wal,
       (select sum(n_tup_ins + n_tup_upd + n_tup_del)::float8 from pg_stat_sys_tables) as catalogs`,
  )
  return { cpu: cpuOfFamily(pid), ...(rows[0] as { wal: number; catalogs: number }) }
}

/** Refreshes each connection once. The lines come from a pipe. */
async function refresh({ ownerUrl }: BenchDatabase, connections: number, day: number) {
  const child = spawn(process.execPath, [MAIN, 'refresh', '-'], {
    env: { ...process.env, DATABASE_URL: ownerUrl },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const { pid = 0 } = child
  function* lines() {
    for (let from = 0; from < connections; from += 10)
      yield Array.from({ length: Math.min(10, connections - from) }, (_, i) =>
        JSON.stringify({ connection: keyOf(numberOf(from + i)), ...refreshLists(from + i, day) }),
      )
        .join('\n')
        .concat('\n')
  }
  const exit = once(child, 'exit')
  const begin = performance.now()
  const written = pipeline(Readable.from(lines()), child.stdin)
  let results = 0
  let usage = { cpu: 0, memory: 0 }
  let end = begin
  for await (const line of createInterface({ input: child.stdout })) {
    if (line.includes('"errors"')) throw new Error(line)
    results += 1
    if (results % 100 > 0 && results < connections) continue
    end = performance.now()
    usage = { cpu: cpuOf(pid), memory: peakMemory(pid) ?? 0 }
  }
  await written
  const [code] = await exit
  if (code !== 0 || results !== connections) throw new Error('the refresh failed')
  return { seconds: (end - begin) / 1000, ...usage }
}

/** Daily syncs of other connections, alone and while refreshes run. */
async function measureReaders(database: BenchDatabase, connections: number): Promise<string> {
  return withServers(async (start) => {
    const service = await start(startService(database.serviceUrl))
    const numbers = Array.from({ length: CONNECTIONS }, (_, index) => index + 1)
    const requests = dailySyncs(numbers, ROWS_EACH).requests(service)
    const load = (durationMs: number) =>
      generateLoad({ port: service.port, clients: CLIENTS, requests, durationMs })
    await load(LOAD_MS / 2)
    const measured = async () => {
      const before = { server: cpuOf(service.pid), database: cpuOfFamily(database.pid ?? 0) }
      const result = await load(LOAD_MS)
      const server = (cpuOf(service.pid) - before.server) / result.requests
      const databaseCpu = (cpuOfFamily(database.pid ?? 0) - before.database) / result.requests
      return { ...result, server, databaseCpu }
    }
    const alone = await measured()
    let day = 3
    let isOver = false
    const refreshes = (async () => {
      for (; !isOver; day += 1) await refresh(database, Math.min(connections, 5_000), day)
    })()
    await load(LOAD_MS / 5)
    const beside = await measured()
    isOver = true
    await refreshes
    const line = (words: string, found: LoadResult & { server: number }, databaseCpu?: number) => [
      words,
      digits(found.rate),
      digits(percentile(found.latencies, 0.5)),
      digits(percentile(found.latencies, 0.99)),
      digits(found.server),
      digits(databaseCpu),
      found.rejected,
    ]
    const columns = ['p50 ms', 'p99 ms', 'CPU ms, server', 'CPU ms, PostgreSQL', 'rejected']
    return table(
      [`${CLIENTS} clients at their daily sync`, 'Requests/s', ...columns],
      // While refreshes run, PostgreSQL works for both.
      [line('alone', alone, alone.databaseCpu), line('while refreshes run', beside)],
    )
  })
}
