import type { Socket } from 'node:net'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { type Limits, RequestContext } from '../context.ts'

export interface RequestEnd {
  request: FastifyRequest
  reply: FastifyReply
  aborted: boolean
  /** Time since its headers were read, in ms. */
  durationMs: number
  /** Bytes sent, after compression, including headers. */
  bytes: number
}

export interface ServiceState {
  /** Sockets with a request in flight. */
  open: Set<Socket>
  /** True during shutdown: the service still responds, but is not ready. */
  draining: boolean
}

declare module 'fastify' {
  interface FastifyInstance {
    state: ServiceState
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
    setCommonHeaders(request, reply)
    const receivedAt = context.startedAt
    const { socket } = request.raw
    const { open } = app.state
    open.add(socket)
    const earlierBytes = socket.bytesWritten
    reply.raw.once('close', () => {
      open.delete(socket)
      const { writableFinished } = reply.raw
      context.end(writableFinished)
      const bytes = socket.bytesWritten - earlierBytes
      const durationMs = performance.now() - receivedAt
      const end = { request, reply, aborted: !writableFinished, durationMs, bytes }
      for (const listener of listeners) listener(end)
    })
    next()
  })
})

/** Headers of data. The referrer policy protects the token in the path. The proxy sets Strict-Transport-Security. */
export const SECURITY_HEADERS = {
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

const VISIBLE_ASCII = /^[\x21-\x7e]{1,128}$/

/** Sends the security headers, the request id, and the trace id of the client (contract 22). */
export function setCommonHeaders(request: FastifyRequest, reply: FastifyReply): void {
  reply.headers(SECURITY_HEADERS)
  reply.header('x-request-id', request.id)
  const trace = request.headers['x-client-trace-id']
  if (typeof trace === 'string' && VISIBLE_ASCII.test(trace)) {
    reply.header('x-client-trace-id', trace)
  }
}
