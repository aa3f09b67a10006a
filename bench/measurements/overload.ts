import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { fill, LARGE } from '../data/data-set.ts'
import { type PostgresServer, withDatabase } from '../data/database.ts'
import { generateInWorker, generateLoad, type LoadResult } from '../load/load-generator.ts'
import { dailySyncs, loads } from '../load/loads.ts'
import { percentile } from '../load/statistics.ts'
import { digits, table } from '../report/tables.ts'
import { withServers } from '../servers/fixture.ts'
import { cpuOf, cpuOfFamily, peakMemory, resetPeak } from '../servers/process-usage.ts'
import { startService } from '../servers/targets.ts'

/** Clients that request 10,000 rows over and over, a quarter of them slow to read. */
const FAST = 150
const SLOW = 50
const SLOW_BYTES_PER_SECOND = 10_000
/** Clients that run their daily sync meanwhile. */
const OTHERS = 4
const CALM_MS = 5_000
const OVERLOADED_MS = 20_000

/** Measures memory and other clients while two hundred clients request the largest responses. */
export async function measureOverload(server: PostgresServer): Promise<string> {
  return withDatabase(server, async (database) => {
    await fill(database.owner, 100_000)
    return withServers(async (start) => {
      const service = await start(startService(database.serviceUrl))
      const { port, pid } = service
      const small = Array.from({ length: LARGE - 1 }, (_, index) => index + 1)
      const syncs = dailySyncs(small, 1_500).requests(service)
      const sync = (durationMs: number) =>
        generateLoad({ port, clients: OTHERS, durationMs, requests: syncs })
      await sync(CALM_MS / 2)
      const used = () => ({ server: cpuOf(pid), database: cpuOfFamily(database.pid ?? 0) })
      const started = used()
      const calm = await sync(CALM_MS)
      const calmEnd = used()
      resetPeak(pid)
      const large = loads(100_000).find(({ key }) => key === 'g')
      const requests = (await large?.requests(service)) ?? []
      const slow = requests
        .slice(0, 1)
        .flatMap(({ bytes }) => Array.from({ length: SLOW }, () => readSlowly(port, bytes)))
      const many = generateInWorker({ port, clients: FAST, durationMs: OVERLOADED_MS, requests })
      await sleep(1_000)
      const others = await sync(OVERLOADED_MS - 2_000)
      const served = await many
      for (const stop of slow) stop()
      const end = used()
      const cpu = {
        calm: differenceOf(started, calmEnd, calm.requests),
        overloaded: differenceOf(calmEnd, end, others.requests + served.requests),
      }
      const memory = peakMemory(pid)?.toFixed(0)
      return describe({ calm, others, served, memory, cpu })
    })
  })
}

interface Cpu {
  server: number
  database: number
}

/** Processor time of a request, in ms. */
const differenceOf = (from: Cpu, to: Cpu, requests: number): Cpu => ({
  server: (to.server - from.server) / requests,
  database: (to.database - from.database) / requests,
})

interface Found {
  calm: LoadResult
  others: LoadResult
  served: LoadResult
  memory: string | undefined
  cpu: { calm: Cpu; overloaded: Cpu }
}

function describe({ calm, others, served, memory, cpu }: Found): string {
  const line = (words: string, { rate, latencies, rejected }: LoadResult) => [
    words,
    digits(rate),
    digits(percentile(latencies, 0.5)),
    digits(percentile(latencies, 0.99)),
    digits(latencies.at(-1)),
    rejected,
  ]
  const columns = ['Clients', 'Requests/s', 'p50 ms', 'p99 ms', 'slowest ms', 'rejected']
  const rows = [
    line(`${OTHERS} at their daily sync, alone`, calm),
    line('the same, with the load below', others),
    line(`${FAST} that request 10,000 rows, and ${SLOW} that read at 10 KB/s`, served),
  ]
  const cpuRow = (words: string, { server, database }: Cpu) => [
    words,
    digits(server),
    digits(database),
  ]
  const cpuTable = table(
    ['CPU ms of a request', 'server', 'PostgreSQL'],
    [cpuRow('daily syncs alone', cpu.calm), cpuRow('all requests together', cpu.overloaded)],
  )
  return `${table(columns, rows)}\n\n${cpuTable}\n\nPeak memory of the service: ${memory} MB.`
}

/** Sends one request and reads the response slowly. @returns function that stops it */
function readSlowly(port: number, request: Buffer): () => void {
  const socket: Socket = connect({
    port,
    host: '127.0.0.1',
    onread: {
      buffer: Buffer.alloc(SLOW_BYTES_PER_SECOND / 10),
      callback: () => {
        setTimeout(() => socket.resume(), 100)
        return false
      },
    },
  })
  socket.on('error', () => {})
  socket.write(request)
  return () => socket.destroy()
}
