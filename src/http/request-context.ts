import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { type Limits, RequestContext } from '../limits/context.ts'
import { SECURITY_HEADERS, setRequestIdentity } from './headers.ts'
import { rejectMalformed } from './malformed-requests.ts'

export interface RequestEnd {
  request: FastifyRequest
  reply: FastifyReply
  aborted: boolean
  /** Time since its headers were read, in ms. */
  durationMs: number
  /** Bytes sent, after compression, including headers. */
  bytes: number
}

declare module 'fastify' {
  interface FastifyInstance {
    /** Adds a listener to the end of each request: complete, failed or aborted. */
    onRequestEnd(listener: (end: RequestEnd) => void): void
  }
  interface FastifyRequest {
    context: RequestContext
  }
}

/** Makes the context of each request and reports its end. Fastify's onResponse does not run after a disconnect. */
export const requestContext = fp(async (app: FastifyInstance, { limits }: { limits: Limits }) => {
  const listeners: ((end: RequestEnd) => void)[] = []
  app.decorate('onRequestEnd', (listener: (end: RequestEnd) => void) => listeners.push(listener))
  app.decorateRequest('context')
  app.addHook('onRequest', (request, reply, next) => {
    const context = new RequestContext(limits)
    request.context = context
    setRequestIdentity(request, reply)
    reply.headers(SECURITY_HEADERS)
    const receivedAt = context.startedAt
    const { socket } = request.raw
    const earlierBytes = socket.bytesWritten
    reply.raw.once('close', () => {
      const { writableFinished } = reply.raw
      context.end(writableFinished)
      const bytes = socket.bytesWritten - earlierBytes
      const durationMs = performance.now() - receivedAt
      const end = { request, reply, aborted: !writableFinished, durationMs, bytes }
      for (const listener of listeners) listener(end)
    })
    rejectMalformed(request, reply)
    next()
  })
})
