import { setTimeout as sleep } from 'node:timers/promises'
import { openExchange } from './exchange.ts'

/** A request as it goes over the wire, and the status that its answer must have. */
export interface WireRequest {
  bytes: Buffer
  status: number
}

export interface LoadOptions {
  port: number
  /** Connections, each with one request under way at any time. */
  clients: number
  durationMs: number
  /** Where fewer requests than would fit into the time are enough. */
  atMost?: number
  /** Asked in turn, over and over. */
  requests: WireRequest[]
}

export interface LoadResult {
  requests: number
  /** Requests per second. */
  rate: number
  /** Milliseconds, in ascending order. */
  latencies: Float64Array
  /** Requests that were turned away for overload, which are not counted above. */
  refused: number
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
 * Asks as fast as the answers come, over bare sockets: next to nothing is spent on the client's side,
 * which shares its cores with what is measured. Every answer's status and length is checked.
 * @throws Error at the first answer that is not as it must be
 */
export async function generateLoad(options: LoadOptions): Promise<LoadResult> {
  const { port, clients, durationMs, requests, atMost = Number.POSITIVE_INFINITY } = options
  const latencies: number[] = []
  const lengths: number[] = []
  let turn = 0
  let refused = 0
  const begin = performance.now()
  const client = async () => {
    const exchange = await openExchange(port)
    while (performance.now() - begin < durationMs && turn < atMost) {
      const index = turn % requests.length
      turn += 1
      const { bytes: request, status } = requests[index] as WireRequest
      const sent = performance.now()
      const answer = await exchange.ask(request)
      if (answer.status === OVERLOADED) {
        refused += 1
        await sleep(RETRY_AFTER_MS)
        continue
      }
      latencies.push(performance.now() - sent)
      lengths[index] ??= answer.length
      if (answer.status !== status || answer.length !== lengths[index]) {
        const said = `${answer.status}, ${answer.length} bytes`
        throw new Error(`port ${port} answered ${said}: ${request}`)
      }
    }
    exchange.close()
  }
  await Promise.all(Array.from({ length: clients }, client))
  const seconds = (performance.now() - begin) / 1000
  const count = latencies.length
  const sorted = Float64Array.from(latencies).sort()
  return { requests: count, rate: count / seconds, latencies: sorted, refused }
}
