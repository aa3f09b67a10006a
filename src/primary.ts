import type { Registry } from 'prom-client'

/** Metrics of one process, as its registry returns them. */
export type ProcessMetrics = Awaited<ReturnType<Registry['getMetricsAsJSON']>>

/** Message to a worker. */
export type ToWorker =
  | { type: 'close'; signal: CloseSignal }
  | { type: 'collect' }
  | { type: 'ping' }
  | { type: 'reply'; id: number; count?: Count }
/** Message to the primary process. */
export type ToPrimary =
  | { type: 'count'; id: number; app: string }
  | { type: 'metrics'; metrics: ProcessMetrics }
  | { type: 'pong' }
  | { type: 'enter'; id: number }
  | { type: 'leave'; id: number }

/** SIGHUP: another worker has taken its place. */
export type CloseSignal = 'SIGTERM' | 'SIGINT' | 'SIGHUP'

/** Requests of an app in its window, and the rest of the window in ms. */
export interface Count {
  current: number
  ttl: number
}

/** Process that has started this worker (src/workers.ts). */
export interface Primary {
  /** Counts a request of an app, together with the other workers. */
  count(app: string): Promise<Count>
  /** Sends the metrics when the primary process asks for them. */
  serveMetrics(registry: Registry): void
  /** Resolves when this worker may listen: at the start of an instance, when all workers can. */
  enter(): Promise<void>
  /**
   * Sends the metrics for the last time, after the server has closed. Then the primary process passes no
   * connection to this worker any more, and none is on its way.
   */
  leave(): Promise<void>
  /**
   * Calls the listener when the primary process closes this worker. It does so again if the whole instance
   * closes during SIGHUP.
   */
  onClose(listener: (signal: CloseSignal) => void): void
}

/** Signals that a worker ignores: terminals and systemd send them to each process of the service. */
export const PRIMARY_SIGNALS: CloseSignal[] = ['SIGTERM', 'SIGINT', 'SIGHUP']

/** Argument of a worker's command line. */
export const WORKER = '--worker'

/**
 * Connects a worker to its primary process, which also closes it. Undefined in a process that is no
 * worker. Node.js ends a worker whose primary process is gone.
 */
export function connectPrimary(): Primary | undefined {
  if (process.send === undefined || !process.argv.includes(WORKER)) return undefined
  for (const signal of PRIMARY_SIGNALS) process.on(signal, () => {})
  const waiting = new Map<number, (reply: { count?: Count }) => void>()
  const signals: CloseSignal[] = []
  let onSignal = (_signal: CloseSignal) => {}
  let messages = 0
  let registry: Registry | undefined
  // A message that fails needs no error: without its primary process, the worker ends.
  const send = (message: ToPrimary) => process.send?.(message, undefined, {}, () => {})
  const ask = (message: { type: 'count'; app: string } | { type: 'enter' | 'leave' }) =>
    new Promise<{ count?: Count }>((resolve) => {
      messages += 1
      waiting.set(messages, resolve)
      send({ ...message, id: messages })
    })
  const sendMetrics = async () => {
    if (registry) send({ type: 'metrics', metrics: await registry.getMetricsAsJSON() })
  }
  process.on('message', (message: ToWorker) => {
    if (message.type === 'close') {
      signals.push(message.signal)
      onSignal(message.signal)
    }
    if (message.type === 'ping') send({ type: 'pong' })
    if (message.type === 'collect') void sendMetrics()
    if (message.type !== 'reply') return
    waiting.get(message.id)?.(message)
    waiting.delete(message.id)
  })
  return {
    count: async (app) => {
      const { count } = await ask({ type: 'count', app })
      return count as Count
    },
    serveMetrics: (all) => {
      registry = all
    },
    enter: async () => {
      await ask({ type: 'enter' })
    },
    leave: async () => {
      await sendMetrics()
      await ask({ type: 'leave' })
    },
    onClose: (listener) => {
      onSignal = listener
      for (const signal of signals) listener(signal)
    },
  }
}
