import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import closeWithGrace from 'close-with-grace'
import { type Logger, pino } from 'pino'
import { type Config, settings } from './config.ts'
import { RequestWindows } from './http/quota.ts'
import type { LogDestination } from './http/request-log.ts'
import {
  type CloseSignal,
  type ProcessMetrics,
  type ToPrimary,
  type ToWorker,
  WORKER,
} from './primary.ts'
import { metricsServer } from './telemetry/metrics.ts'
import { WorkerMetrics } from './telemetry/worker-metrics.ts'

/** Limits of an instance that its workers share. The limit of files applies to each process. */
const SHARED = [
  'DATABASE_POOL_SIZE',
  'DATABASE_QUEUE',
  'ANSWER_MEMORY_MB',
  'MAX_REQUESTS',
  'MAX_SOCKETS',
] as const

/**
 * Settings of the worker in a place, from 0. The first places get the remainders, so the shares add up
 * to the limit. A share is at least the minimum of its setting.
 */
function workerSettings(config: Config, workers: number, place: number): Record<string, string> {
  const shares = SHARED.map((name) => {
    const share = Math.floor((config[name] + workers - 1 - place) / workers)
    return [name, String(Math.max(share, settings[name].minimum ?? 0))]
  })
  // The primary process sets these three with the embedded database.
  const { DATABASE_URL = '', DEMO_APP_TOKEN = '', DEMO_CONNECTION_TOKEN = '' } = config
  const located = { DATABASE_URL, DEMO_APP_TOKEN, DEMO_CONNECTION_TOKEN }
  return { ...Object.fromEntries(shares), ...located, WORKERS: '1' }
}

/** Lifetime after which the pause before a replacement is short again, in ms. */
const STABLE_MS = 10_000
const MAX_PAUSE_MS = 10_000
/** Time in which a worker sends its metrics, in ms. After it, its last ones are used. */
const METRICS_MS = 1_000
/** Pause between reads of the log of a worker, in ms: each read wakes this process. */
const RELAY_MS = 10
/** Interval at which each worker must respond, in ms. */
const PING_MS = 5_000
/** Unanswered pings after which a worker is killed. Time would also pass while the machine is suspended. */
const MAX_UNANSWERED = 6
/** Time after the limits of the workers at which this process stops to wait for them, in ms. */
const LAST_MS = 2_000

interface Member {
  worker: Worker
  startedAt: number
  metrics: ProcessMetrics
  unansweredPings: number
  /** Resolves when it can listen, or has ended. */
  prepared: Promise<void>
  /** Address on which it listens. Undefined if it has ended before. */
  listening: Promise<AddressInfo | undefined>
  /** Exit code, or the signal that killed it. */
  ended: Promise<number | string>
}

/**
 * Starts an instance of several workers, and replaces those that end. SIGHUP restarts them one by one.
 * This process only accepts connections and passes them on, in turn. With `reusePort`, a restart lost
 * connections that a worker had not accepted. With SCHED_NONE, one worker had all of few connections.
 * @param config with the URL of the database
 * @param stream receives the log of all processes
 * @param close called when no worker is left
 * @returns the address, when the first worker listens. If it cannot, the process exits with code 1
 */
export async function startWorkers(
  config: Config,
  workers: number,
  stream: LogDestination,
  close: () => Promise<void>,
): Promise<string> {
  const log = pino({ level: config.LOG_LEVEL }, stream)
  cluster.schedulingPolicy = cluster.SCHED_RR
  cluster.setupPrimary({ args: [WORKER], stdio: ['ignore', 'pipe', 'inherit', 'ipc'] })
  const group = new WorkerGroup(config, workers, log, stream)
  const server = metricsServer(config, log, () => group.metricsText())

  const delay = config.SHUTDOWN_DELAY_MS + config.SHUTDOWN_GRACE_MS + LAST_MS
  closeWithGrace({ delay, logger: log, skip: ['SIGHUP'] }, async ({ signal, err }) => {
    if (err) log.fatal({ err }, 'closing after a failure')
    const reasons = await group.close(signal === 'SIGTERM' ? signal : 'SIGINT')
    await server.close()
    await close()
    await stream.end()
    if (reasons.some((reason) => reason !== 0)) process.exit(1)
  })
  // A worker that does not respond would outlive this process.
  process.on('exit', () => group.kill())
  let restarted = Promise.resolve()
  process.on('SIGHUP', () => {
    restarted = restarted.then(() => group.restart())
  })
  if (config.METRICS_PORT !== undefined) await server.listen()
  const address = await group.start()
  if (address === undefined) {
    if (!group.closing) await close().finally(() => process.exit(1))
    return await new Promise<never>(() => {})
  }
  const host = address.address.includes(':') ? `[${address.address}]` : address.address
  const url = `http://${host}:${address.port}`
  log.info({ workers }, `Server listening at ${url}`)
  return url
}

/** Workers of an instance. Each has a place, and so has the one that replaces it. */
class WorkerGroup {
  closing = false
  readonly #config: Config
  readonly #workers: number
  readonly #log: Logger
  readonly #stream: LogDestination
  readonly #metrics: WorkerMetrics
  readonly #windows = new RequestWindows()
  readonly #running = new Set<Member>()
  readonly #places: Member[] = []

  constructor(config: Config, workers: number, log: Logger, stream: LogDestination) {
    this.#config = config
    this.#workers = workers
    this.#log = log
    this.#stream = stream
    stream.reportDrops(log)
    this.#metrics = new WorkerMetrics(stream.dropped)
  }

  /**
   * The workers listen together. If the first one listened alone, it would get all connections that are
   * open when the instance becomes ready.
   * @returns the address of the first worker. Undefined if it cannot start
   */
  async start(): Promise<AddressInfo | undefined> {
    const [firstMay, othersMay] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    // The first worker alone: if it cannot start, its sentence is the only one.
    const first = this.#open(0, firstMay.promise)
    this.#places[0] = first
    await first.prepared
    if (!this.#running.has(first)) return undefined
    for (let place = 1; place < this.#workers; place += 1) {
      this.#places[place] = this.#open(place, othersMay.promise)
    }
    await Promise.all(this.#places.map(({ prepared }) => prepared))
    firstMay.resolve()
    const address = await first.listening
    if (address === undefined) return undefined
    othersMay.resolve()
    for (const place of this.#places.keys()) void this.#keep(place)
    return address
  }

  /** Replaces the workers one by one. */
  async restart(): Promise<void> {
    for (const place of this.#places.keys()) {
      if (this.closing) return
      const next = this.#open(place)
      if ((await next.listening) === undefined) {
        this.#log.error('the restart stops: a new worker does not start')
        return
      }
      const old = this.#places[place] as Member
      this.#places[place] = next
      send(old, { type: 'close', signal: 'SIGHUP' })
      await old.ended
    }
    this.#log.info('all workers are new')
  }

  /** Closes all workers. @returns the exit code of each, or the signal that killed it */
  async close(signal: CloseSignal): Promise<(number | string)[]> {
    this.closing = true
    for (const member of this.#running) send(member, { type: 'close', signal })
    return await Promise.all([...this.#running].map(({ ended }) => ended))
  }

  /** Kills the workers that are left. */
  kill(): void {
    for (const { worker } of this.#running) worker.process.kill('SIGKILL')
  }

  /** Returns the metrics of all workers, for Prometheus. */
  async metricsText(): Promise<string> {
    return this.#metrics.text(await Promise.all([...this.#running].map(collect)))
  }

  /** @param mayListen resolves when the worker may listen */
  #open(place: number, mayListen?: Promise<void>): Member {
    const worker = cluster.fork(workerSettings(this.#config, this.#workers, place))
    const ended = once(worker.process, 'close').then(([code, signal]) => code ?? signal)
    const address = new Promise<AddressInfo>((resolve) => worker.once('listening', resolve))
    const listening = Promise.race([address, ended.then(() => undefined)])
    const entering = Promise.withResolvers<void>()
    const prepared = Promise.race([entering.promise, ended.then(() => {})])
    const startedAt = performance.now()
    const handlers = { prepared, listening, ended }
    const member: Member = { worker, startedAt, metrics: [], unansweredPings: 0, ...handlers }
    this.#running.add(member)
    void this.#killUnresponsive(member)
    void ended.then(async () => {
      this.#running.delete(member)
      await this.#metrics.workerEnded(member.metrics)
    })
    worker.on('message', async (message: ToPrimary) => {
      if (message.type !== 'enter') return this.#receive(member, message)
      entering.resolve()
      await mayListen
      send(member, { type: 'reply', id: message.id })
    })
    worker.on('error', (err) => this.#log.warn({ err, worker: worker.process.pid }, 'worker'))
    closeUnaccepted(worker)
    relayLines(worker, (lines) => this.#stream.write(lines))
    return member
  }

  /**
   * Kills a worker that no longer responds. Health checks cannot detect it: the other workers respond to
   * them. The start of a worker has no limit, because it may take long on a busy machine.
   */
  async #killUnresponsive(member: Member): Promise<void> {
    const { worker, prepared, ended } = member
    await prepared
    const pings = setInterval(() => {
      if (member.unansweredPings === MAX_UNANSWERED) {
        this.#log.error({ worker: worker.process.pid }, 'worker does not respond')
        worker.process.kill('SIGKILL')
      }
      member.unansweredPings += 1
      send(member, { type: 'ping' })
    }, PING_MS)
    await ended
    clearInterval(pings)
  }

  #receive(member: Member, message: Exclude<ToPrimary, { type: 'enter' }>): void {
    const { type } = message
    if (type === 'pong') member.unansweredPings = 0
    else if (type === 'leave') send(member, { type: 'reply', id: message.id })
    else if (type === 'count') {
      send(member, { type: 'reply', id: message.id, count: this.#windows.count(message.app) })
    } else {
      member.metrics = message.metrics
      member.worker.emit('metrics')
    }
  }

  /** Replaces the worker of a place whenever it ends. */
  async #keep(place: number): Promise<void> {
    for (let failures = 0; ; ) {
      const member = this.#places[place] as Member
      const reason = await member.ended
      if (this.closing) return
      if (this.#places[place] !== member) continue
      const lived = performance.now() - member.startedAt
      failures = lived < STABLE_MS ? failures + 1 : 0
      this.#metrics.workerReplaced()
      this.#log.error(
        { worker: member.worker.process.pid, reason, lived: Math.round(lived) },
        'worker ended',
      )
      if (failures > 1) await sleep(Math.min(100 * 2 ** failures, MAX_PAUSE_MS))
      if (this.closing) return
      if (this.#places[place] === member) this.#places[place] = this.#open(place)
    }
  }
}

/** Asks a worker for its metrics. */
async function collect(member: Member): Promise<ProcessMetrics> {
  const signal = AbortSignal.timeout(METRICS_MS)
  send(member, { type: 'collect' })
  await once(member.worker, 'metrics', { signal }).catch(() => {})
  return member.metrics
}

function send({ worker }: Member, message: ToWorker): void {
  // A worker that is gone needs no message.
  worker.send(message, () => {})
}

/**
 * Closes the connections that a worker has not accepted when it is killed. Node.js keeps them open
 * forever, because it waits for the reply of the worker. If a worker rejects a connection, Node.js passes
 * it to another one.
 */
function closeUnaccepted({ process: child }: Worker): void {
  const send = child.send.bind(child) as (...message: unknown[]) => boolean
  const unaccepted = new Map<number, { close(): void }>()
  Object.assign(child, {
    send: (
      message: { act?: string; seq: number },
      handle?: { close(): void },
      ...rest: unknown[]
    ) => {
      if (handle && message.act === 'newconn') unaccepted.set(message.seq, handle)
      return send(message, handle, ...rest)
    },
  })
  // Runs before the listener of node:cluster, which may pass the next connection.
  child.prependListener('internalMessage', ({ ack }: { ack: number }) => unaccepted.delete(ack))
  // After the last message of the worker.
  child.once('close', () => {
    for (const handle of unaccepted.values()) handle.close()
  })
}

/** Passes whole lines on: a pipe may mix lines of several processes. */
function relayLines({ process: { stdout } }: Worker, write: (lines: string) => void): void {
  let text = ''
  stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
    const end = text.lastIndexOf('\n') + 1
    if (end > 0) write(text.slice(0, end))
    text = text.slice(end)
    stdout.pause()
    setTimeout(() => stdout.resume(), RELAY_MS)
  })
}
