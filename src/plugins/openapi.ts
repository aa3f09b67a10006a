import swagger from '@fastify/swagger'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'

/** The OpenAPI document, made of the schemas that validate the requests. */
export const openapi = fp(async (app: FastifyInstance) => {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'Investment Data Query Service', version: '1' },
    },
    refResolver: { buildLocalReference: (json) => String(json.$id) },
  })
  app.get('/openapi.json', { schema: { hide: true } }, async () => app.swagger())
})
