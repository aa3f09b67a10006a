import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance, FastifyReply, FastifyRequest, FastifyServerOptions } from 'fastify'
import fp from 'fastify-plugin'
import type { DestinationStream } from 'pino'

export interface RequestEnd {
  request: FastifyRequest
  reply: FastifyReply
  /** The client disconnected before the end of the response. */
  aborted: boolean
}

declare module 'fastify' {
  interface FastifyInstance {
    /** Returns the number of log lines that could not be written. */
    droppedLogLines: () => number
    /** Adds a listener to the end of each request: complete, failed or aborted. */
    onRequestEnd(listener: (end: RequestEnd) => void): void
  }
  interface FastifyRequest {
    /** Called once at the end of this request. One listener of the response calls all of them. */
    endListeners: (() => void)[]
    /** Id of the calling app, once the database has confirmed its credentials. */
    appId: string | undefined
    /** Id of its trace, if traces are on. */
    traceId: string | undefined
    /** Number of rows in the response. */
    items: number | undefined
  }
}

/** Reports the end of each request. Fastify's onResponse hook does not run after a disconnect. */
export const requestEnd = fp(async (app: FastifyInstance) => {
  const listeners: ((end: RequestEnd) => void)[] = []
  app.decorate('onRequestEnd', (listener: (end: RequestEnd) => void) => listeners.push(listener))
  app.decorateRequest('endListeners')
  app.addHook('onRequest', (request, reply, next) => {
    request.endListeners = []
    reply.raw.once('close', () => {
      const end = { request, reply, aborted: !reply.raw.writableFinished }
      for (const listener of listeners) listener(end)
      for (const listener of request.endListeners) listener()
    })
    next()
  })
})

/** Logs one line per request, without the path, which contains the connection token (contract 21). */
export const accessLog = fp(async (app: FastifyInstance) => {
  app.decorate('droppedLogLines', () => 0)
  app.decorateRequest('appId')
  app.decorateRequest('items')
  app.decorateRequest('traceId')
  app.onRequestEnd(({ request, reply, aborted }) => {
    const line = {
      method: request.method,
      route: request.routeOptions.url,
      status: aborted && !reply.raw.headersSent ? undefined : reply.statusCode,
      errorCode: request.errorCode,
      unavailableReason: request.unavailableReason,
      durationMs: Math.round(reply.elapsedTime * 1000) / 1000,
      app: request.appId,
      items: request.items,
      traceId: request.traceId,
    }
    request.log.info(aborted ? { ...line, aborted } : line, 'request')
  })
})

/** Options of the logger of Fastify. */
export type LoggerOptions = Exclude<NonNullable<FastifyServerOptions['logger']>, boolean>

/**
 * Removes secrets from all log lines. Fastify's own serializers log the path of a request. They also
 * log every property of an error, such as the claims of a token.
 */
export const redactedLogger = (options: LoggerOptions): LoggerOptions => ({
  ...options,
  serializers,
})

const serializers = {
  req: ({ id, method, routeOptions }: FastifyRequest) => ({ id, method, route: routeOptions.url }),
  res: ({ statusCode = 0 }: { statusCode?: number }) => ({ statusCode }),
  err: (error: unknown) => serializeError(error),
}

interface LoggedError extends Record<string, unknown> {
  type: string
  message: string
  stack: string
}

function serializeError(error: unknown, depth = 0): LoggedError {
  if (!(error instanceof Error)) return { type: typeof error, message: '', stack: '' }
  const { name: type, message, stack = '', cause } = error
  const { code } = error as { code?: unknown }
  const nested = cause && depth < 3 ? { cause: serializeError(cause, depth + 1) } : {}
  return { type, message, code, stack, ...nested }
}

/** Characters that may wait for the reader of the log. Further lines are dropped. */
const MAX_WAITING = 2 ** 20
/** Time in which the last lines are written on shutdown, in ms. */
const LAST_LINES_MS = 1_000

export interface LogDestination extends DestinationStream {
  /** Counts dropped lines in the metrics. Logs a warning when lines can be written again. */
  reportDrops(app: Pick<FastifyInstance, 'log' | 'droppedLogLines'>): void
  /** Resolves when all lines are written, after LAST_LINES_MS at the latest. */
  end(): Promise<void>
}

/**
 * Writes the log lines of one tick of the event loop to standard output at once. Under load, writing
 * each line alone costs a tenth of the shortest request. If the reader stops or the disk is full, lines
 * are dropped. Node.js writes to pipes and sockets asynchronously, so the process never waits for them.
 * @param format changes the lines before they are written
 */
export function logDestination(format = (lines: string) => lines): LogDestination {
  const { stdout } = process
  let text = ''
  let dropped = 0
  let reported = 0
  let afterError = false
  let report = (_lines: number) => {}
  const written = (batch: string, error: Error | null | undefined) => {
    if (error) dropped += countLines(batch)
    else if (reported < dropped && stdout.writableLength === 0) {
      report(dropped - reported)
      reported = dropped
    }
    afterError = Boolean(error)
  }
  const flush = () => {
    if (text === '') return
    const batch = text
    text = ''
    if (stdout.writableLength > MAX_WAITING) dropped += countLines(batch)
    // A full disk may have cut the previous line.
    else stdout.write(`${afterError ? '\n' : ''}${format(batch)}`, (error) => written(batch, error))
  }
  // written() handles the errors. Without a listener, they would end the process.
  stdout.on('error', () => {})
  process.on('exit', flush)
  return {
    write: (line) => {
      if (text === '') setImmediate(flush)
      text += line
    },
    reportDrops: (app) => {
      app.droppedLogLines = () => dropped
      report = (lines) => app.log.warn({ lines }, 'log lines were dropped')
    },
    end: async () => {
      flush()
      const allWritten = new Promise((resolve) => stdout.write('', resolve))
      await Promise.race([allWritten, sleep(LAST_LINES_MS)])
    },
  }
}

const countLines = (text: string) => text.split('\n').length - 1
