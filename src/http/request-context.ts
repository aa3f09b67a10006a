import type { Socket } from 'node:net'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { Admission } from '../limits/admission.ts'
import type { Bag } from '../limits/bag.ts'
import type { Limits } from '../limits/limits.ts'
import { MemoryAccount } from '../limits/memory-account.ts'
import type { WriteScheduler } from '../limits/write-scheduler.ts'
import { type ReadEvent, Reader } from '../postgres/reader.ts'
import { FactRecorder } from '../request-facts.ts'

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
  open: Bag<Socket>
  /** True during shutdown: the service still responds, but is not ready. */
  draining: boolean
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** True for a health check: it is not logged, traced or counted as a rejected request. */
    isProbe?: boolean
  }
  interface FastifyInstance {
    state: ServiceState
    /** Makes the parts of a request. Fastify's hooks do it, unless none of them runs. */
    beginRequest(request: FastifyRequest, reply: FastifyReply): void
    /** Order in which large responses write their chunks. */
    writeScheduler: WriteScheduler
    /** Adds a listener to the end of each request: complete, failed or aborted. */
    onRequestEnd(listener: (end: RequestEnd) => void): void
    /** Adds a listener to the end of each read of a request. */
    onReadEnd(listener: (read: ReadEvent) => void): void
  }
  interface FastifyRequest {
    /** Facts for log, metrics and traces. */
    recorder: FactRecorder
    /** Whose limits it uses, and its permit. */
    admission: Admission
    /** Memory of its response. */
    memory: MemoryAccount
    /** Its reads of the database. */
    reader: Reader
  }
}

/** Makes the parts of each request that outlive its handler, and reports its end. Fastify's onResponse does not run after a disconnect. */
export const requestContext = fp(async (app: FastifyInstance, { limits }: { limits: Limits }) => {
  const endListeners: ((end: RequestEnd) => void)[] = []
  const readListeners: ((read: ReadEvent) => void)[] = []
  const onReadEnd = (read: ReadEvent) => {
    for (const listener of readListeners) listener(read)
  }
  app.decorate('onRequestEnd', (listener: (end: RequestEnd) => void) => endListeners.push(listener))
  app.decorate('onReadEnd', (listener: (read: ReadEvent) => void) => readListeners.push(listener))
  app.decorate('writeScheduler', limits.writeScheduler)
  app.decorateRequest('recorder')
  app.decorateRequest('admission')
  app.decorateRequest('memory')
  app.decorateRequest('reader')
  const beginRequest = (request: FastifyRequest, reply: FastifyReply) => {
    const recorder = new FactRecorder()
    const admission = new Admission(limits)
    const memory = new MemoryAccount(limits.memory, admission)
    request.recorder = recorder
    request.admission = admission
    request.memory = memory
    request.reader = new Reader({
      owner: admission,
      memory,
      sizes: limits.pageSizes,
      recorder,
      onReadEnd,
    })
    setCommonHeaders(request, reply)
    const { socket } = request.raw
    const { open } = app.state
    open.add(socket)
    const earlierBytes = socket.bytesWritten
    reply.raw.once('close', () => {
      open.delete(socket)
      const { writableFinished } = reply.raw
      memory.close(writableFinished)
      admission.close()
      const bytes = socket.bytesWritten - earlierBytes
      const durationMs = performance.now() - recorder.facts.receivedAt
      const end = { request, reply, aborted: !writableFinished, durationMs, bytes }
      for (const listener of endListeners) listener(end)
    })
  }
  app.decorate('beginRequest', beginRequest)
  app.addHook('onRequest', (request, reply, next) => {
    beginRequest(request, reply)
    next()
  })
  app.addHook('onSend', (_request, reply, _payload, next) => {
    // The client has them with the response that it stored: a 304 only replaces what has changed (RFC 9111, section 4.3.4).
    if (reply.statusCode !== 304) reply.headers(SECURITY_HEADERS)
    next()
  })
})

/**
 * Headers of data. They replace those that a handler sets: a plugin with other values sends them in an onSend hook of its
 * own. The referrer policy protects the token in the path. The proxy sets Strict-Transport-Security.
 */
export const SECURITY_HEADERS = {
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

const VISIBLE_ASCII = /^[\x21-\x7e]{1,128}$/

/** Sends the request id, and the trace id of the client. */
function setCommonHeaders(request: FastifyRequest, reply: FastifyReply): void {
  reply.header('x-request-id', request.id)
  const trace = request.headers['x-client-trace-id']
  if (typeof trace === 'string' && VISIBLE_ASCII.test(trace)) {
    reply.header('x-client-trace-id', trace)
  }
}
