import { get, type IncomingMessage } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { fill, LARGE } from '../data/data-set.ts'
import { type BenchDatabase, type PostgresServer, withDatabase } from '../data/database.ts'
import { digits, table } from '../report/tables.ts'
import { withServers } from '../servers/fixture.ts'
import { cpuOf, cpuOfFamily, peakMemory, resetPeak } from '../servers/process-usage.ts'
import { startService, type Target } from '../servers/targets.ts'

const NDJSON = { accept: 'application/x-ndjson' }
/** A slow client pauses this long after each MiB, for as many MiB. */
const PAUSE_MS = 200
const PAUSES = 30

/** Exports, by the headers of their requests. */
const EXPORTS: { name: string; headers: Record<string, string>; slow?: true }[] = [
  { name: 'NDJSON', headers: NDJSON },
  { name: 'CSV', headers: { accept: 'text/csv' } },
  { name: 'NDJSON, gzip', headers: { ...NDJSON, 'accept-encoding': 'gzip' } },
  { name: `NDJSON, ${PAUSES} pauses of ${PAUSE_MS} ms`, headers: NDJSON, slow: true },
]

/** Peak memory, time and CPU of a new process of the service for each export of the large connection. */
export async function measureExports(
  server: PostgresServer,
  { largeRows }: { largeRows: number },
): Promise<string> {
  return withDatabase(server, async (database) => {
    await fill(database.owner, largeRows)
    return exportsTable(database, largeRows)
  })
}

/** The same in a database that is filled. */
export async function exportsTable(database: BenchDatabase, largeRows: number): Promise<string> {
  const rows: (string | undefined)[][] = []
  for (const { name, headers, slow } of EXPORTS) {
    const found = await withServers(async (start) => {
      const service = await start(startService(database.serviceUrl))
      const { pid } = service
      await sleep(1_000)
      resetPeak(pid)
      const databaseCpu = () => cpuOfFamily(database.pid ?? 0)
      const before = { server: cpuOf(pid), database: databaseCpu() }
      const [idle, began] = [memoryOf(pid), performance.now()]
      const { bytes, total } = await download(service, headers, slow)
      if (total !== largeRows) throw new Error(`the export has ${total} rows`)
      const seconds = (performance.now() - began) / 1000
      const cpu = [cpuOf(pid) - before.server, databaseCpu() - before.database]
      const used = [largeRows / seconds, bytes / 1e6, seconds, ...cpu.map((ms) => ms / 1000)]
      const peak = memoryOf(pid)
      return [...used.map(digits), ...[idle, peak, peak - idle].map((mb) => mb.toFixed(0))]
    })
    rows.push([name, ...found])
  }
  return table([`${largeRows.toLocaleString('en')} rows as`, ...COLUMNS], rows)
}

const COLUMNS = [
  'Rows/s',
  'MB sent',
  'seconds',
  'CPU s, server',
  'CPU s, PostgreSQL',
  'idle MB',
  'peak MB',
  'above idle',
]

const memoryOf = (pid: number) => peakMemory(pid) ?? Number.NaN

/** Downloads an export without keeping it. @throws Error if it is cut or is no export */
async function download(service: Target, headers: Record<string, string>, slow = false) {
  const [path] = service.page({ connection: LARGE, limit: 1, page: 0 }).split('?')
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const all = { ...service.headers(LARGE), ...headers }
    get({ host: '127.0.0.1', port: service.port, path, headers: all }, resolve).on('error', reject)
  })
  if (response.statusCode !== 200) throw new Error(`status ${response.statusCode}`)
  let bytes = 0
  let pauses = 0
  for await (const chunk of response) {
    bytes += chunk.length
    if (!slow || pauses === PAUSES || bytes < pauses * 2 ** 20) continue
    pauses += 1
    await sleep(PAUSE_MS)
  }
  return { bytes, total: Number(response.headers['x-total-count']) }
}
