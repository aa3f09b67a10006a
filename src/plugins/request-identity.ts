import { randomUUID } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'

/** The server names every request itself; what a client sends as a name could be anything. */
export const newRequestId = (): string => randomUUID()

const VISIBLE_ASCII = /^[\x21-\x7e]{1,128}$/

export const requestIdentity = fp(async (app: FastifyInstance) => {
  app.addHook('onRequest', async (request, reply) => tellIdentity(request, reply))
})

/** Tells that name in an answer, and gives the client its own trace id back (contract 22). */
export function tellIdentity(request: FastifyRequest, reply: FastifyReply): void {
  reply.header('x-request-id', request.id)
  const trace = request.headers['x-client-trace-id']
  if (typeof trace === 'string' && VISIBLE_ASCII.test(trace)) {
    reply.header('x-client-trace-id', trace)
  }
}
