import type { FastifyInstance, FastifyRequest, FastifyServerOptions } from 'fastify'
import fp from 'fastify-plugin'

/** Time between two lines of repeated rejections of an app or a client address, in ms. */
const SAMPLE_MS = 1_000

/** Logs a line per request, without the path: it has the token (contract 21). Samples repeated rejections. */
export const accessLog = fp(async (app: FastifyInstance) => {
  app.onRequestEnd(({ request, reply, aborted, durationMs, bytes }) => {
    const { context } = request
    const { appId, repeatedBy, statement, writingAt } = context
    if (repeatedBy && performance.now() - repeatedBy.loggedAt < SAMPLE_MS) {
      repeatedBy.unlogged += 1
      return
    }
    const line = {
      method: request.method,
      route: request.routeOptions.url,
      status: aborted && !reply.raw.headersSent ? undefined : reply.statusCode,
      errorCode: context.errorCode,
      unavailableReason: context.unavailableReason,
      durationMs: Math.round(durationMs * 1000) / 1000,
      waitMs: statement && Math.round(context.waitMs * 1000) / 1000,
      databaseMs: statement && Math.round(context.databaseMs * 1000) / 1000,
      writeMs: writingAt && Math.round((performance.now() - writingAt) * 1000) / 1000,
      app: appId,
      items: context.items,
      bytes,
      mediaType: context.mediaType,
      encoding: reply.getHeader('content-encoding'),
      statement,
      server: context.server,
      traceId: context.span?.spanContext().traceId,
      unlogged: repeatedBy?.unlogged,
    }
    if (repeatedBy) {
      repeatedBy.loggedAt = performance.now()
      repeatedBy.unlogged = 0
    }
    request.log.info(aborted ? { ...line, aborted } : line, 'request')
  })
})

export type LoggerOptions = Exclude<NonNullable<FastifyServerOptions['logger']>, boolean>

/** They remove secrets from log lines: Fastify logs the path of a request, and all properties of an error. */
export const serializers = {
  req: ({ id, method, routeOptions }: FastifyRequest) => ({ id, method, route: routeOptions.url }),
  res: ({ statusCode = 0 }: { statusCode?: number }) => ({ statusCode }),
  err: (error: unknown) => serializeError(error),
}

function serializeError(error: unknown, depth = 0): Record<'type' | 'message' | 'stack', string> {
  if (!(error instanceof Error)) return { type: typeof error, message: '', stack: '' }
  const { name: type, message, stack = '', cause } = error
  const { code } = error as { code?: unknown }
  const nested = cause && depth < 3 ? { cause: serializeError(cause, depth + 1) } : {}
  return { type, message, ...{ code }, stack, ...nested }
}
