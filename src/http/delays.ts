import type {
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  onRequestAsyncHookHandler,
} from 'fastify'
import fp from 'fastify-plugin'
import type { Limits } from '../limits/limits.ts'
import type { Place } from '../limits/rejections.ts'

/** Routes whose callers have credentials: authentication.ts rejects the others. */
const API = '/api/'

/**
 * Delays the page, the OpenAPI document and health checks as repeated rejections, because they need no credentials. The
 * first 100 requests of an address do not wait. The error handler does the same for paths that do not exist.
 */
export const delays = fp(async (app: FastifyInstance, { limits }: { limits: Limits }) => {
  const { rejections, tenants } = limits
  const delay: onRequestAsyncHookHandler = async (request, reply) => {
    if (app.state.draining) return
    const { ip, recorder, routeOptions } = request
    const tenant = routeOptions.config.isProbe ? tenants.ofHealthChecks(ip) : tenants.of(ip)
    await delayed(request, reply, rejections.take(tenant, recorder.facts.receivedAt))
  }
  app.addHook('onRoute', (route) => {
    if (route.url.startsWith(API)) return
    route.onRequest = [...[route.onRequest ?? []].flat(), delay]
  })
})

/**
 * Delays a response until its place is first in the queue.
 * @returns false if too many wait: the connection is then closed, and the reply is not sent
 */
export async function delayed(
  request: FastifyRequest,
  reply: FastifyReply,
  { begins, repeatedBy }: Place,
): Promise<boolean> {
  request.recorder.repeat(repeatedBy)
  if (await begins) return true
  request.raw.destroy()
  reply.hijack()
  return false
}
