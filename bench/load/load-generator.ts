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
  const { port, clients, durationMs } = options
  const recorder = new Recorder(options)
  const begin = performance.now()
  const client = async () => {
    const connection = await openConnection(port)
    while (performance.now() - begin < durationMs) {
      const request = recorder.next()
      const sent = performance.now()
      const response = await connection.send(request.bytes)
      const isServed = recorder.record(request, response, sent)
      if (!isServed) await sleep(RETRY_AFTER_MS)
    }
    connection.close()
  }
  await Promise.all(Array.from({ length: clients }, client))
  return recorder.result(begin)
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
 * @throws Error at the first wrong response
 */
export async function generateConstantLoad(
  options: LoadOptions,
  perSecond: number,
): Promise<LoadResult> {
  const { port, clients, durationMs } = options
  const recorder = new Recorder(options)
  const connections = await Promise.all(Array.from({ length: clients }, () => openConnection(port)))
  const begin = performance.now()
  const total = Math.floor((durationMs / 1000) * perSecond)
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
  return recorder.result(begin)
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
  readonly #options: LoadOptions
  readonly #latencies: number[] = []
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
    this.#latencies.push(performance.now() - from)
    const length = this.#lengths.get(request) ?? response.length
    this.#lengths.set(request, length)
    const isWhole = response.length === length
    if (response.status !== request.status || !isWhole) {
      const found = `${response.status}, ${response.length} bytes`
      throw new Error(`port ${this.#options.port} returned ${found}: ${request.bytes}`)
    }
    return true
  }

  result(begin: number): LoadResult {
    const seconds = (performance.now() - begin) / 1000
    const requests = this.#latencies.length
    const latencies = Float64Array.from(this.#latencies).sort()
    return { requests, rate: requests / seconds, latencies, rejected: this.#rejected }
  }
}
