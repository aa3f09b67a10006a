import { readFile } from 'node:fs/promises'
import swagger from '@fastify/swagger'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { addExamples, readDemoResponses } from './demo-responses.ts'
import { arrangeParameters, type Document, requireHeaders, shareParts } from './document.ts'

const GUIDE = new URL('guide.md', import.meta.url)

/**
 * Serves the OpenAPI document at /openapi.json. Fastify generates it from the schemas that validate the
 * requests. Its description is guide.md.
 */
export const openapi = fp(async (app: FastifyInstance) => {
  const description = await readFile(GUIDE, 'utf8')
  const examples = await readDemoResponses()
  await app.register(swagger, {
    openapi: { ...base, info: { ...base.info, description } },
    refResolver: { buildLocalReference: (json) => String(json.$id) },
    transformObject: (generated) => {
      if (!('openapiObject' in generated)) throw new Error('The document is not OpenAPI 3.')
      const document = generated.openapiObject as object as Document
      arrangeParameters(document)
      requireHeaders(document)
      addExamples(document, examples)
      shareParts(document)
      return generated.openapiObject
    },
  })
  let text: string | undefined
  app.get('/openapi.json', { schema: { hide: true } }, async (_request, reply) => {
    // The first request generates it, because the routes are registered after this plugin.
    text ??= JSON.stringify(app.swagger())
    return reply.type('application/json; charset=utf-8').send(text)
  })
})

const base = {
  openapi: '3.1.0',
  info: { title: 'Investment Data Query Service', version: '1' },
  servers: [{ url: '/', description: 'The service that serves this document' }],
  tags: [
    { name: 'Transactions', description: 'Movements of investments and of cash, in pages' },
    { name: 'Transfer orders', description: 'Orders to transfer assets that the user completed' },
  ],
  security: [{ appToken: [] }],
  components: {
    securitySchemes: {
      appToken: {
        type: 'http' as const,
        scheme: 'bearer',
        description: 'Token of the calling app. It identifies the app only.',
      },
    },
  },
}
