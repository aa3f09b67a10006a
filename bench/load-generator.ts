import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

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

interface Answer {
  status: number
  /** Bytes of the body. */
  length: number
}

interface Exchange {
  ask(request: Buffer): Promise<Answer>
  close(): void
}

const HEAD_END = Buffer.from('\r\n\r\n')
// JSON holds no bare line break, so this cannot stand inside a body.
const LAST_CHUNK = Buffer.from('0\r\n\r\n')

/** One connection, on which one request follows the other. */
async function openExchange(port: number): Promise<Exchange> {
  let answered: ((answer: Answer) => void) | undefined
  let failed: ((error: Error) => void) | undefined
  let reading: Reading = { received: 0 }
  const onData = (chunk: Buffer) => {
    if (!read(reading, chunk)) return
    const { status = 0, headLength = 0, received } = reading
    reading = { received: 0 }
    answered?.({ status, length: received - headLength })
  }
  // One buffer for all that arrives spares the garbage collector a good deal.
  const socket = connect({
    port,
    host: '127.0.0.1',
    noDelay: true,
    onread: {
      buffer: Buffer.allocUnsafe(262_144),
      callback: (length, buffer) => {
        onData((buffer as Buffer).subarray(0, length))
        return true
      },
    },
  })
  const fail = (error?: Error) => failed?.(error ?? new Error(`port ${port} hung up`))
  socket.on('error', fail).on('end', fail)
  await once(socket, 'connect')
  return {
    ask: (request) =>
      new Promise((resolve, reject) => {
        answered = resolve
        failed = reject
        socket.write(request)
      }),
    close: () => socket.off('end', fail).destroy(),
  }
}

/** An answer of which a part has arrived. */
interface Reading {
  received: number
  status?: number
  headLength?: number
  /** Bytes of the whole answer; undefined where it comes in chunks. */
  expected?: number | undefined
  tail?: Buffer
}

/** Takes in what arrived; whether the answer is complete. */
function read(reading: Reading, chunk: Buffer): boolean {
  reading.received += chunk.length
  if (reading.headLength === undefined) {
    const end = chunk.indexOf(HEAD_END)
    if (end < 0) throw new Error('the head of an answer came in pieces')
    const head = chunk.toString('latin1', 0, end)
    reading.status = Number(head.slice(9, 12))
    reading.headLength = end + HEAD_END.length
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
    const chunked = length === undefined && reading.status !== 304
    reading.expected = chunked ? undefined : reading.headLength + Number(length ?? 0)
  }
  if (reading.expected !== undefined) return reading.received >= reading.expected
  // The end may arrive in two pieces.
  const tail = Buffer.concat([reading.tail ?? Buffer.alloc(0), chunk.subarray(-5)]).subarray(-5)
  reading.tail = Buffer.from(tail)
  return tail.equals(LAST_CHUNK)
}
