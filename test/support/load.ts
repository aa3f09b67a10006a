import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Kysely } from 'kysely'
import type { Test } from 'tap'
import type { Tables } from '../../src/postgres/tables.ts'
import { isNightly } from '../nightly.ts'
import {
  addSampleData,
  check,
  digestOfChunks,
  type GoldenResponse,
  type Result,
  recordOk,
  requestsOf,
  staleETag,
  type TestRequest,
} from './golden-responses.ts'
import { type ServiceProcess, startServiceProcess } from './processes/service-process.ts'
import { until } from './until.ts'
import { within } from './within.ts'

export interface LoadReport {
  sent: number
  ok: number
  /** Correct responses with status 503. */
  unavailable: number
  /** Wrong responses, broken connections and requests that exceeded their limit. */
  errors: string[]
  slowestMs: number
  /** Mean durations of the responses, for diagnostics only. */
  okMs: number
  unavailableMs: number
}

export interface Clients {
  clients: number
  /** Pause of a client after each response, in ms. Without one, a few clients keep the whole machine busy. */
  pauseMs?: number
}

/** Nightly jobs send more requests. Half of the processor time of a test with load is that of its requests. */
const PAUSE_MS = isNightly ? 10 : 50

/**
 * Starts clients that each send the next request after the response to the last one.
 * @param sendOnce sends one request of the client with this number
 * @returns a function that stops the clients and returns the report
 */
export function startLoad(
  t: Test,
  { clients, pauseMs = PAUSE_MS }: Clients,
  sendOnce: (client: number) => Promise<Result>,
): () => Promise<LoadReport> {
  const durations = { ok: 0, unavailable: 0 }
  const report = { sent: 0, ok: 0, unavailable: 0, errors: [] as string[], slowestMs: 0 }
  let stopped = false
  const runClient = async (client: number) => {
    while (!stopped) {
      const start = performance.now()
      report.sent += 1
      const result = await sendOnce(client).catch(lost)
      const ms = performance.now() - start
      report.slowestMs = Math.max(report.slowestMs, ms)
      if (result === 'ok' || result === 'unavailable') {
        report[result] += 1
        durations[result] += ms
      } else report.errors.push(result)
      if (pauseMs > 0) await sleep(pauseMs)
    }
  }
  const all = Promise.all(Array.from({ length: clients }, (_, client) => runClient(client)))
  const stop = async () => {
    stopped = true
    await within('the clients have stopped', all, 180_000)
    const { ok, unavailable } = report
    return {
      ...report,
      okMs: durations.ok / ok,
      unavailableMs: durations.unavailable / unavailable,
    }
  }
  t.teardown(stop)
  return stop
}

const lost = (error: Error): Result => `error: ${error} ${error.cause ?? ''}`

export interface GoldenLoad extends Clients {
  url: string
  golden: GoldenResponse[]
  /** Time in ms after which a request counts as hanging. */
  limitMs?: number | undefined
  /** Opens a connection for each request. */
  newConnections?: boolean
}

const LARGE_BYTES = 100_000
/** The bodies of the sample data have up to 4 MB. If all were sent equally often, the few large ones would take most of the time. */
const SMALL_FOR_LARGE = 19

/** Puts some small responses before each large one. */
function fewLarge(golden: GoldenResponse[]): GoldenResponse[] {
  const large = golden.filter(({ bytes }) => bytes > LARGE_BYTES)
  const small = golden.filter(({ bytes }) => bytes <= LARGE_BYTES)
  if (large.length === 0 || small.length === 0) return golden
  const rounds = Math.max(large.length, Math.ceil(small.length / SMALL_FOR_LARGE))
  const ordered: (GoldenResponse | undefined)[] = []
  for (let round = 0; round < rounds; round += 1) {
    for (let n = 0; n < SMALL_FOR_LARGE; n += 1)
      ordered.push(small[(round * SMALL_FOR_LARGE + n) % small.length])
    ordered.push(large[round % large.length])
  }
  return ordered as GoldenResponse[]
}

/** Starts clients that compare each response with the golden one. */
export function startGoldenLoad(t: Test, options: GoldenLoad): () => Promise<LoadReport> {
  const { url, limitMs, newConnections = false } = options
  const golden = isNightly ? options.golden : fewLarge(options.golden)
  let turn = 0
  return startLoad(t, options, async () => {
    turn += 1
    const expected = golden[turn % golden.length] as GoldenResponse
    // A stale ETag takes another way through the service: first the version, then the page.
    const conditional = Math.floor(turn / golden.length) % 2 === 1
    const headers: Record<string, string> = {}
    if (conditional) headers['if-none-match'] = staleETag(expected)
    // The others ask for compressed bodies, as fetch() does by default.
    if (!conditional && !isNightly) headers['accept-encoding'] = 'identity'
    if (newConnections) headers.connection = 'close'
    return await check(url, expected, { headers, limitMs })
  })
}

/** Asserts that each response was the golden one or a correct 503, and prints the figures. */
export function assertNoErrors(t: Test, report: LoadReport, note = ''): void {
  const { sent, ok, unavailable, errors, slowestMs } = report
  process.stderr.write(
    `${t.name}: ${sent} sent, ${ok} ok, ${unavailable} with 503, ${errors.length} errors, ` +
      `slowest ${Math.round(slowestMs)} ms${note}\n`,
  )
  t.same(errors.slice(0, 3), [], `errors of ${sent} requests`)
  t.equal(ok + unavailable, sent)
  t.ok(ok > 0)
}

/** Asserts that each response was the golden one. */
export function assertAllAnswered(t: Test, report: LoadReport): void {
  assertNoErrors(t, report)
  t.equal(report.unavailable, 0, 'requests with 503')
}

export interface ServiceUnderLoad {
  service: ServiceProcess
  golden: GoldenResponse[]
  /**
   * Causes a fault under load. Asserts that each response is golden or a correct 503, and that the
   * service recovers by itself.
   * @param fault ends when its cause is gone
   */
  during(t: Test, fault: () => Promise<void>, options?: Partial<GoldenLoad>): Promise<LoadReport>
}

export interface ServiceUnderLoadOptions {
  /** Tables of the owner, for the sample data. */
  db: Kysely<Tables>
  /** Connection string of the service. */
  login: string
  environment?: Record<string, string>
}

/** Twice STATEMENT_TIMEOUT_MS, a second of grace, and three for a busy machine. */
const LIMIT_MS = 5_000 + 5_000 + 1_000 + 3_000

export async function startServiceUnderLoad(
  t: Test,
  { db, login, environment = {} }: ServiceUnderLoadOptions,
): Promise<ServiceUnderLoad> {
  const requests = requestsOf(await addSampleData(db, 3_000))
  const service = await startServiceProcess(t, { DATABASE_URL: login, ...environment })
  const golden = await recordOk(service.url, requests)
  const responds = async () => {
    const [first] = golden
    if (first === undefined || (await service.ready()) !== 200) return false
    return (await check(service.url, first).catch(lost)) === 'ok'
  }
  const during: ServiceUnderLoad['during'] = async (t, fault, options = {}) => {
    const load = { url: service.url, golden, clients: 8, limitMs: LIMIT_MS }
    const stop = startGoldenLoad(t, { ...load, ...options })
    await sleep(300)
    await fault()
    const faultEnd = performance.now()
    await until('the service is ready and responds', responds)
    const recoveryMs = Math.round(performance.now() - faultEnd)
    await sleep(300)
    const report = await stop()
    assertNoErrors(t, report, `, ready again after ${recoveryMs} ms`)
    t.equal(service.process.exitCode, null, 'the process is the same')
    t.same(await recordOk(service.url, requests), golden, 'all responses are as before')
    return report
  }
  return { service, golden, during }
}

/** Client that reads its response slowly, or stops reading it. */
export interface SlowClient {
  /** Resolves with the first bytes of the response. */
  begun: Promise<unknown>
  /** Body that was received when the connection closed. */
  received: Promise<Pick<GoldenResponse, 'digest' | 'bytes'>>
  disconnect(): void
}

const READS_PER_SECOND = 20

/** @param bytesPerSecond 0 for a client that reads the first bytes and then none */
export function readSlowly(
  port: number,
  { path, token }: TestRequest,
  bytesPerSecond: number,
): SlowClient {
  // A paused socket receives only what is read explicitly.
  const socket = connect({ port, host: '127.0.0.1' }).pause()
  socket.on('error', () => {})
  // With HTTP/1.0, the body has no chunks and ends with the connection.
  socket.write(`GET ${path} HTTP/1.0\r\nAuthorization: Bearer ${token}\r\n\r\n`)
  const chunks: Buffer[] = []
  let closed = false
  const close = once(socket, 'close').then(() => {
    closed = true
  })
  const begun = Promise.race([once(socket, 'readable'), close])
  const read = async () => {
    await begun
    while (!closed && bytesPerSecond > 0) {
      const most = Math.min(bytesPerSecond / READS_PER_SECOND, socket.readableLength)
      const chunk: Buffer | null = most > 0 ? socket.read(most) : socket.read()
      if (chunk) chunks.push(chunk)
      await sleep(1_000 / READS_PER_SECOND)
    }
    await close
    const response = Buffer.concat(chunks)
    const body = response.subarray(response.indexOf('\r\n\r\n') + 4)
    const { digest, bytes } = await digestOfChunks([body])
    return { digest, bytes }
  }
  return { begun, received: read(), disconnect: () => socket.destroy() }
}
