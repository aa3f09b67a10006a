import { readFile } from 'node:fs/promises'
import swagger from '@fastify/swagger'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { readDemoAnswers, showDemoAnswers } from './demo-responses.ts'
import { arrangeParameters, type Document, requireHeaders, shareParts } from './document.ts'

const GUIDE = new URL('guide.md', import.meta.url)

/**
 * The OpenAPI document, made of the schemas that validate the requests, as /openapi.json. The guide to
 * the service is its description; what cannot be said in a schema is added at the end.
 */
export const openapi = fp(async (app: FastifyInstance) => {
  const description = await readFile(GUIDE, 'utf8')
  const answers = await readDemoAnswers()
  await app.register(swagger, {
    openapi: { ...about, info: { ...about.info, description } },
    refResolver: { buildLocalReference: (json) => String(json.$id) },
    transformObject: (found) => {
      if (!('openapiObject' in found)) throw new Error('the document is not one of OpenAPI')
      const document = found.openapiObject as object as Document
      arrangeParameters(document)
      requireHeaders(document)
      showDemoAnswers(document, answers)
      shareParts(document)
      return found.openapiObject
    },
  })
  let text: string | undefined
  app.get('/openapi.json', { schema: { hide: true } }, async (_request, reply) => {
    // Not before: the routes are registered later than this.
    text ??= JSON.stringify(app.swagger())
    return reply.type('application/json; charset=utf-8').send(text)
  })
})

const about = {
  openapi: '3.1.0',
  info: { title: 'Investment Data Query Service', version: '1' },
  servers: [{ url: '/', description: 'The service that this document comes from' }],
  tags: [
    { name: 'Transactions', description: 'Movements of investments and of cash, in pages' },
    { name: 'Transfer orders', description: 'Orders to move assets that the user completed' },
  ],
  security: [{ appToken: [] }],
  components: {
    securitySchemes: {
      appToken: {
        type: 'http' as const,
        scheme: 'bearer',
        description: 'The token of the calling app. It says which app calls, and nothing more.',
      },
    },
  },
}
