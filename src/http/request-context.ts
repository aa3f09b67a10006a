import type { Socket } from 'node:net'
import type { Span } from '@opentelemetry/api'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { type Limits, ReadContext } from '../limits/context.ts'
import type { Tenant } from '../limits/requests.ts'
import type { Caller } from '../queries/caller.ts'
import { type ProblemCode, problem } from '../schemas/problem.ts'
import { rejectMalformed, SECURITY_HEADERS, setRequestIdentity } from './headers.ts'

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

export const tooManyRequests = () =>
  problem('service_unavailable', { detail: 'Too many requests are in flight. Try again soon.' })

/** Facts of one request: for its reads, its log line, its metrics and its trace. */
export class RequestContext extends ReadContext {
  caller: Caller | undefined
  errorCode: ProblemCode | undefined
  unavailableReason: 'database' | 'identity_provider' | 'overload' | undefined
  items: number | undefined
  mediaType: string | undefined
  /** Time at which the first rows were read, on performance.now()'s clock. */
  writingAt: number | undefined
  /** Tenant of a repeated rejection, whose log lines are sampled. */
  repeatedBy: Tenant | undefined
  span: Span | undefined
  #entered = false

  /** Takes a share of the requests in flight. @throws ProblemError 503 if the tenant has its share */
  enter(tenant: Tenant): void {
    if (this.ended) return
    const { requests } = this.limits
    if (this.#entered) requests.leave(this.tenant)
    this.#entered = requests.enter(tenant)
    this.tenant = tenant
    if (!this.#entered) throw tooManyRequests()
  }

  /** Waits for the turn of a rejection, outside of the request limit. @returns false if too many wait */
  waitToReject(ip: string): Promise<boolean> {
    const { requests, rejections, nobody, callers } = this.limits
    if (this.#entered) requests.leave(this.tenant)
    this.#entered = false
    const tenant = this.tenant === nobody ? callers.tenantOfAddress(ip) : this.tenant
    const turn = rejections.turn(tenant, this.startedAt)
    if (tenant.rejectionAt > performance.now()) this.repeatedBy = tenant
    return turn
  }

  override confirm(appId: string): void {
    super.confirm(appId)
    if (this.caller) this.limits.callers.learn(this.caller.key, appId)
  }

  override end(sent: boolean): void {
    super.end(sent)
    if (this.#entered) this.limits.requests.leave(this.tenant)
  }
}

/** Makes the context of each request and reports its end. Fastify's onResponse does not run after a disconnect. */
export const requestContext = fp(async (app: FastifyInstance, { limits }: { limits: Limits }) => {
  const listeners: ((end: RequestEnd) => void)[] = []
  app.decorate('onRequestEnd', (listener: (end: RequestEnd) => void) => listeners.push(listener))
  app.decorateRequest('context')
  /** Bytes of earlier responses on each connection. */
  const sent = new WeakMap<Socket, number>()
  app.addHook('onRequest', (request, reply, next) => {
    const context = new RequestContext(limits)
    request.context = context
    setRequestIdentity(request, reply)
    reply.headers(SECURITY_HEADERS)
    const receivedAt = context.startedAt
    reply.raw.once('close', () => {
      const { writableFinished } = reply.raw
      context.end(writableFinished)
      const { socket } = request.raw
      const bytes = socket.bytesWritten - (sent.get(socket) ?? 0)
      sent.set(socket, socket.bytesWritten)
      const durationMs = performance.now() - receivedAt
      const end = { request, reply, aborted: !writableFinished, durationMs, bytes }
      for (const listener of listeners) listener(end)
    })
    rejectMalformed(request, reply)
    next()
  })
})
