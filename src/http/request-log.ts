import type { FastifyInstance, FastifyReply, FastifyRequest, FastifyServerOptions } from 'fastify'
import fp from 'fastify-plugin'
import { type DestinationStream, pino } from 'pino'

/** How a request ended: whole, or by a client that went away before it had its answer. */
export interface RequestEnd {
  request: FastifyRequest
  reply: FastifyReply
  aborted: boolean
}

declare module 'fastify' {
  interface FastifyInstance {
    /** Has a function called for each request of the service, once, when it is over in any way. */
    onRequestEnd(listener: (end: RequestEnd) => void): void
  }
}

/** Fastify's own hook, onResponse, does not run for a request whose client is gone. */
export const requestEnd = fp(async (app: FastifyInstance) => {
  const listeners: ((end: RequestEnd) => void)[] = []
  app.decorate('onRequestEnd', (listener: (end: RequestEnd) => void) => listeners.push(listener))
  app.addHook('onRequest', (request, reply, next) => {
    reply.raw.once('close', () => {
      const end = { request, reply, aborted: !reply.raw.writableFinished }
      for (const listener of listeners) listener(end)
    })
    next()
  })
})

declare module 'fastify' {
  interface FastifyRequest {
    /** The calling app, once the database has said which one it is. */
    appId: string | undefined
    /** Where it is found among the traces, when there are any. */
    traceId: string | undefined
    /** Rows in the answer. */
    items: number | undefined
  }
}

/**
 * One line for each request, when it is over, with these facts and no others. The route is its pattern,
 * never the address: that holds the connection's token, which is a credential (contract 21).
 */
export const accessLog = fp(async (app: FastifyInstance) => {
  app.decorateRequest('appId')
  app.decorateRequest('items')
  app.decorateRequest('traceId')
  app.onRequestEnd(({ request, reply, aborted }: RequestEnd) => {
    const facts = {
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
    if (aborted) request.log.info({ ...facts, aborted }, 'request')
    else request.log.info(facts, 'request')
  })
})

type Logger = NonNullable<FastifyServerOptions['logger']>

/**
 * A logger that writes nothing that may be a secret, whoever hands it over. Fastify's own serializers
 * would print the address of a request, with the connection's token in it, and every property of an
 * error, such as the claims of a token.
 */
export function redactedLogger(logger: Logger): Logger {
  return typeof logger === 'object' ? { ...logger, serializers } : logger
}

const serializers = {
  req: ({ id, method, routeOptions }: FastifyRequest) => ({ id, method, route: routeOptions?.url }),
  res: ({ statusCode = 0 }: { statusCode?: number }) => ({ statusCode }),
  err: (error: unknown) => loggedError(error),
}

interface LoggedError extends Record<string, unknown> {
  type: string
  message: string
  stack: string
}

/** An error without the other things that libraries hang on theirs. */
function loggedError(error: unknown, depth = 0): LoggedError {
  if (!(error instanceof Error)) return { type: typeof error, message: '', stack: '' }
  const { name: type, message, stack = '', cause } = error
  const { code } = error as { code?: unknown }
  const because: object = cause && depth < 3 ? { cause: loggedError(cause, depth + 1) } : {}
  return { type, message, code, stack, ...because }
}

/**
 * Standard output, to which the lines of one turn of the event loop go in one write: under load, a tenth
 * of what the shortest request costs is the writing of its line. Nothing waits longer than that turn, and
 * whatever is there when the process exits is still written.
 */
export function logDestination(): DestinationStream {
  const output = pino.destination({ fd: 1, sync: true })
  let lines = ''
  const flush = () => {
    if (lines === '') return
    output.write(lines)
    lines = ''
  }
  process.on('exit', flush)
  return {
    write: (line) => {
      if (lines === '') setImmediate(flush)
      lines += line
    },
  }
}
