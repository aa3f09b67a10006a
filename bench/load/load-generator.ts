import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { openConnection } from './connection.ts'

/** The bytes of a request, and the status that its response must have. */
export interface WireRequest {
  bytes: Buffer
  status: number
}

export interface LoadOptions {
  port: number
  /** Connections, each with one request in flight at any time. */
  clients: number
  /** Time in which latencies are recorded. */
  durationMs: number
  /** Sent in turn, over and over. */
  requests: WireRequest[]
}

export interface LoadResult {
  /** All requests, also those before the latencies were recorded. */
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

/** A server has sent another status or another length than before. */
export class WrongResponse extends Error {
  override name = 'WrongResponse'
}

const OVERLOADED = 503
const RETRY_AFTER_MS = 1_000

/**
 * Time at the start of a load in which no latency is recorded. Processes that have been idle first share a processor, until
 * the kernel moves one of them to the other: at half of the highest rate, requests of the first 0.2 s took up to 90 ms, with
 * each server, and decided the 99th percentile.
 */
const SETTLE_MS = 300

/**
 * Sends requests as fast as responses arrive. Bare sockets cost little processor time, which the
 * client shares with the measured server. Checks the status and length of every response.
 * @throws WrongResponse at the first one
 */
export async function generateLoad(options: LoadOptions): Promise<LoadResult> {
  const { port, clients, durationMs } = options
  const recorder = new Recorder(options)
  const { begin } = recorder
  const client = async () => {
    const connection = await openConnection(port)
    while (performance.now() - begin < SETTLE_MS + durationMs) {
      const request = recorder.next()
      const sent = performance.now()
      const response = await connection.send(request.bytes)
      const isServed = recorder.record(request, response, sent)
      if (!isServed) await sleep(RETRY_AFTER_MS)
    }
    connection.close()
  }
  await Promise.all(Array.from({ length: clients }, client))
  return recorder.result()
}

/** Generates load in a thread apart from the clients whose time is measured: reading megabytes would delay them. */
export async function generateInWorker(workerData: LoadOptions): Promise<LoadResult> {
  const worker = new Worker(new URL('./load-worker.ts', import.meta.url), { workerData })
  const [result] = await once(worker, 'message')
  return result
}

/**
 * Sends requests at a constant rate, as clients do that know nothing of each other. A request that finds no free
 * connection waits, and its latency counts from the time at which it should have been sent: a server that stops for a
 * moment delays all requests of this moment, and not only those in flight.
 * @param perSecond requests per second
 * @throws WrongResponse at the first one
 */
export async function generateConstantLoad(
  options: LoadOptions,
  perSecond: number,
): Promise<LoadResult> {
  const { port, clients, durationMs } = options
  const connections = await Promise.all(Array.from({ length: clients }, () => openConnection(port)))
  const recorder = new Recorder(options)
  const { begin } = recorder
  const total = Math.floor(((SETTLE_MS + durationMs) / 1000) * perSecond)
  let count = 0
  await Promise.all(
    connections.map(async (connection) => {
      while (count < total) {
        const intended = begin + (count / perSecond) * 1000
        count += 1
        const from = await untilTime(intended)
        const request = recorder.next()
        const response = await connection.send(request.bytes)
        recorder.record(request, response, from)
      }
      connection.close()
    }),
  )
  return recorder.result()
}

/**
 * Waits for a time.
 * @returns the time itself if it is over: the server has kept this connection busy. Otherwise the time at which the timer
 * has fired, because the delay of a timer, up to a millisecond, is not that of the server
 */
async function untilTime(time: number): Promise<number> {
  const wait = time - performance.now()
  if (wait <= 0) return time
  await sleep(wait)
  return Math.max(time, performance.now())
}

/** Chooses the requests of a load in turn, checks their responses, and records their latencies. */
class Recorder {
  /** Start of the load, on performance.now()'s clock. */
  readonly begin = performance.now()
  readonly #options: LoadOptions
  readonly #latencies: number[] = []
  #requests = 0
  /** Length of the first response to each request. */
  readonly #lengths = new Map<WireRequest, number>()
  #turn = 0
  #rejected = 0

  constructor(options: LoadOptions) {
    this.#options = options
  }

  next(): WireRequest {
    const { requests } = this.#options
    const request = requests[this.#turn % requests.length]
    this.#turn += 1
    return request as WireRequest
  }

  /** @param from time of the request @returns false if the server has rejected it for overload */
  record(
    request: WireRequest,
    response: { status: number; length: number },
    from: number,
  ): boolean {
    if (response.status === OVERLOADED) {
      this.#rejected += 1
      return false
    }
    this.#requests += 1
    if (from >= this.begin + SETTLE_MS) this.#latencies.push(performance.now() - from)
    const length = this.#lengths.get(request) ?? response.length
    this.#lengths.set(request, length)
    const isWhole = response.length === length
    if (response.status !== request.status || !isWhole) {
      const found = `${response.status} with ${response.length} bytes`
      const expected = `${request.status} with ${length}`
      throw new WrongResponse(
        `port ${this.#options.port} returned ${found} instead of ${expected}: ${request.bytes}`,
      )
    }
    return true
  }

  result(): LoadResult {
    const seconds = (performance.now() - this.begin) / 1000
    const requests = this.#requests
    const latencies = Float64Array.from(this.#latencies).sort()
    return { requests, rate: requests / seconds, latencies, rejected: this.#rejected }
  }
}
