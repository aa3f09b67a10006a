import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyInstance, FastifyRequest, FastifyServerOptions } from 'fastify'
import fp from 'fastify-plugin'
import type { DestinationStream } from 'pino'
import { errorMessage } from '../error-message.ts'
import type { Limits } from '../limits/limits.ts'

interface LogOptions {
  trustsProxies: boolean
  limits: Limits
}

/** Logs a line per request, without the path: it has the token. Samples repeated rejections. */
export const accessLog = fp(async (app: FastifyInstance, options: LogOptions) => {
  const { logSamples } = options.limits
  let expectsProxy = options.trustsProxies
  app.onRequestEnd(({ request, reply, aborted, durationMs, bytes }) => {
    const { facts } = request.recorder
    if (!expectsProxy && request.headers['x-forwarded-for'] !== undefined) {
      expectsProxy = true
      const advice = 'set TRUSTED_PROXIES, or all clients share the limits of one address'
      app.log.warn({ proxy: request.ip }, `a request came through a proxy: ${advice}`)
    }
    const { appId, repeatedBy, statement, writingAt } = facts
    const sample = logSamples.next(repeatedBy)
    if (sample === undefined) return
    const line = {
      method: request.method,
      route: request.routeOptions.url,
      status: aborted && !reply.raw.headersSent ? undefined : reply.statusCode,
      errorCode: facts.errorCode,
      unavailableReason: facts.unavailableReason,
      durationMs: Math.round(durationMs * 1000) / 1000,
      waitMs: statement && Math.round(facts.waitMs * 1000) / 1000,
      databaseMs: statement && Math.round(facts.databaseMs * 1000) / 1000,
      writeMs: writingAt && Math.round((performance.now() - writingAt) * 1000) / 1000,
      app: appId,
      items: facts.items,
      bytes,
      mediaType: facts.mediaType,
      encoding: reply.getHeader('content-encoding'),
      statement,
      server: facts.server,
      traceId: facts.span?.spanContext().traceId,
      unlogged: sample.unlogged,
    }
    request.log.info(aborted ? { ...line, aborted } : line, 'request')
  })
})

export type LoggerOptions = Exclude<NonNullable<FastifyServerOptions['logger']>, boolean>

/** Remove secrets from log lines: Fastify logs the path of a request, and all properties of an error. */
export const serializers = {
  req: ({ id, method, routeOptions }: FastifyRequest) => ({ id, method, route: routeOptions.url }),
  res: ({ statusCode = 0 }: { statusCode?: number }) => ({ statusCode }),
  err: (error: unknown) => serializeError(error),
}

type LoggedError = {
  type: string
  message: string
  code?: unknown
  stack: string
  cause?: LoggedError | undefined
}

function serializeError(error: unknown, depth = 0): LoggedError {
  if (!(error instanceof Error)) return { type: typeof error, message: '', stack: '' }
  const { name: type, stack = '', cause } = error
  const message = errorMessage(error)
  const { code } = error as { code?: unknown }
  const nested = cause && depth < 3 ? serializeError(cause, depth + 1) : undefined
  return { type, message, code, stack, cause: nested }
}

/** Characters that may wait for the reader of the log. Further lines are dropped. */
const MAX_WAITING = 2 ** 20
const LAST_LINES_MS = 1_000

export interface LogDestination extends DestinationStream {
  dropped(): number
  /** Resolves when all lines are written, after LAST_LINES_MS at the latest. */
  end(): Promise<void>
}

/**
 * Writes the lines of one tick of the event loop at once: a write for each costs a tenth of the shortest request.
 * Drops lines if the reader stops or the disk is full. The process never waits for a pipe or a socket.
 */
export function logDestination(format?: (lines: string) => string): LogDestination {
  const { stdout } = process
  let text = ''
  let dropped = 0
  let reported = 0
  // A full disk may have cut the last line.
  let isCut = false
  const write = (line: string) => {
    if (text === '') setImmediate(flush)
    text += line
  }
  const drop = (batch: string) => {
    dropped += batch.split('\n').length - 1
  }
  const flush = () => {
    const batch = text
    text = ''
    if (batch === '') return
    if (stdout.writableLength > MAX_WAITING) {
      drop(batch)
      return
    }
    stdout.write(`${isCut ? '\n' : ''}${format?.(batch) ?? batch}`, (error) => {
      isCut = Boolean(error)
      if (error) drop(batch)
      else if (reported < dropped && stdout.writableLength === 0) {
        write(dropsLine(dropped - reported))
        reported = dropped
      }
    })
  }
  // The callback of write() handles the errors. Without a listener, they would end the process.
  stdout.on('error', () => {})
  process.on('exit', flush)
  return {
    write,
    dropped: () => dropped,
    end: async () => {
      flush()
      const allWritten = new Promise((resolve) => stdout.write('', resolve))
      await Promise.race([allWritten, sleep(LAST_LINES_MS)])
    },
  }
}

const dropsLine = (lines: number) =>
  `${JSON.stringify({ level: 40, time: Date.now(), lines, msg: 'log lines were dropped' })}\n`
