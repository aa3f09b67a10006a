import { METHODS } from 'node:http'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { Refusal } from './problems.ts'

const ALLOWED = ['GET', 'HEAD']
// CONNECT never reaches a route: Node hands it to proxies, and closes it where there is none.
const REFUSED = METHODS.filter((method) => !ALLOWED.includes(method) && method !== 'CONNECT')

/**
 * Answers 405 with Allow to every other method, on every address that is registered after this
 * (contract 7), before a body is read.
 */
export const otherMethods = fp(async (app: FastifyInstance) => {
  for (const method of REFUSED) {
    if (!app.supportedMethods.includes(method)) app.addHttpMethod(method)
  }
  app.addHook('onRoute', function refuse({ method, routePath }) {
    if (method !== 'GET') return
    this.route({
      method: REFUSED,
      url: routePath,
      schema: { hide: true },
      onRequest: async () => {
        throw new Refusal('method_not_allowed', 'Only GET and HEAD are answered here.', {
          headers: { allow: ALLOWED.join(', ') },
        })
      },
      handler: async () => {},
    })
  })
})
