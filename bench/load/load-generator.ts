import { setTimeout as sleep } from 'node:timers/promises'
import { openConnection } from './connection.ts'

/** The bytes of a request, and the status that its response must have. */
export interface WireRequest {
  bytes: Buffer
  status: number
  /** True if the chunks of the response, and so its length, may vary. */
  anyLength?: boolean
}

export interface LoadOptions {
  port: number
  /** Connections, each with one request in flight at any time. */
  clients: number
  durationMs: number
  /** Sent in turn, over and over. */
  requests: WireRequest[]
}

export interface LoadResult {
  requests: number
  /** Requests per second. */
  rate: number
  /** Milliseconds, in ascending order. */
  latencies: Float64Array
  /** Requests that got 503 for overload; not counted above. */
  rejected: number
}

/** A request without a body. */
export function wireRequest(
  path: string,
  headers: Record<string, string> = {},
  status = 200,
): WireRequest {
  const lines = Object.entries({ host: '127.0.0.1', ...headers }).map(([k, v]) => `${k}: ${v}\r\n`)
  return { bytes: Buffer.from(`GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`), status }
}

const OVERLOADED = 503
const RETRY_AFTER_MS = 1_000

/**
 * Sends requests as fast as responses arrive. Bare sockets cost little processor time, which the
 * client shares with the measured server. Checks the status and length of every response.
 * @throws Error at the first wrong response
 */
export async function generateLoad(options: LoadOptions): Promise<LoadResult> {
  const { port, clients, durationMs, requests } = options
  const latencies: number[] = []
  const lengths: number[] = []
  let turn = 0
  let rejected = 0
  const begin = performance.now()
  const client = async () => {
    const connection = await openConnection(port)
    while (performance.now() - begin < durationMs) {
      const index = turn % requests.length
      turn += 1
      const { bytes: request, status, anyLength = false } = requests[index] as WireRequest
      const sent = performance.now()
      const response = await connection.send(request)
      if (response.status === OVERLOADED) {
        rejected += 1
        await sleep(RETRY_AFTER_MS)
        continue
      }
      latencies.push(performance.now() - sent)
      lengths[index] ??= response.length
      const isWhole = anyLength || response.length === lengths[index]
      if (response.status !== status || !isWhole) {
        const found = `${response.status}, ${response.length} bytes`
        throw new Error(`port ${port} returned ${found}: ${request}`)
      }
    }
    connection.close()
  }
  await Promise.all(Array.from({ length: clients }, client))
  const seconds = (performance.now() - begin) / 1000
  const count = latencies.length
  const sorted = Float64Array.from(latencies).sort()
  return { requests: count, rate: count / seconds, latencies: sorted, rejected }
}
