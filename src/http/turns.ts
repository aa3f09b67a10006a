import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { Limits } from '../limits/limits.ts'

/** Routes whose callers have credentials: authentication.ts rejects the others. */
const API = '/api/'
const HEALTH = '/health/'

/**
 * Delays the page, the OpenAPI document and health checks as repeated rejections, because they need no credentials. The
 * first 100 requests of an address do not wait. The error handler does the same for paths that do not exist.
 */
export const turns = fp(async (app: FastifyInstance, { limits }: { limits: Limits }) => {
  const { rejections, tenants } = limits
  const wait = async (request: FastifyRequest, reply: FastifyReply, url: string) => {
    const { ip, recorder } = request
    const tenant = url.startsWith(HEALTH) ? tenants.ofHealthChecks(ip) : tenants.of(ip)
    const { begins, repeatedBy } = rejections.take(tenant, recorder.facts.receivedAt)
    recorder.repeat(repeatedBy)
    if (await begins) return
    request.raw.destroy()
    reply.hijack()
  }
  app.addHook('onRequest', (request, reply, next) => {
    const { url = API } = request.routeOptions
    // A request for data needs no promise here.
    if (request.is404 || url.startsWith(API) || app.state.draining) next()
    else wait(request, reply, url).then(() => next(), next)
  })
})
