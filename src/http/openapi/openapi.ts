import { readFile } from 'node:fs/promises'
import swagger from '@fastify/swagger'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import packageJson from '../../../package.json' with { type: 'json' }
import type { Config } from '../../config.ts'
import { components } from '../../schemas/lists.ts'
import { type ProblemCode, ProblemCodes, titleOf } from '../../schemas/problem.ts'
import { memoryFile } from '../memory-file.ts'
import { codeSamples, INSTALL, PLACEHOLDER } from './code-samples.js'
import { completeOperation, describeReferences, type Operation, type Schema } from './complete.ts'
import { readExamples } from './examples.ts'

const GUIDE = new URL('guide.md', import.meta.url)

/** Serves the OpenAPI document. The first request generates it from the schemas of the routes. */
export const openapi = fp(async (app: FastifyInstance, { config }: { config: Config }) => {
  const { CONTACT_URL, PUBLIC_URL } = config
  const [appToken, connectionToken] = config.DEMO_TOKENS?.split(',') ?? []
  const shown = PUBLIC_URL === undefined ? PLACEHOLDER : withoutSlash(PUBLIC_URL)
  const guide = (await readFile(GUIDE, 'utf8'))
    .replaceAll(PLACEHOLDER, shown)
    .replace('NPM_INSTALL', INSTALL.npm)
    .replace('PIP_INSTALL', INSTALL.pip)
  const examples = await readExamples()
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Investment Data Query Service',
        // It says what UNLICENSED in package.json means. Redoc shows the identifier instead of the name.
        license: { name: 'All rights reserved', identifier: 'LicenseRef-All-rights-reserved' },
        version: packageJson.version,
        description: `${guide}\n${errorCodes()}`,
        ...(CONTACT_URL === undefined ? {} : { contact: { url: CONTACT_URL } }),
      },
      tags: [
        { name: 'Transactions', description: 'Movements of investments and of cash, in pages' },
        {
          name: 'Transfer orders',
          description: 'Orders to transfer assets that the user completed',
        },
      ],
      security: [{ appToken: [] }],
      servers: serversOf(config),
      // The page /docs fills them in.
      ...(appToken ? { 'x-demo-tokens': { appToken, connectionToken } } : {}),
      components: {
        securitySchemes: {
          appToken: {
            type: 'http',
            scheme: 'bearer',
            description: 'Token of the calling app. It identifies the app only.',
          },
        },
      },
    },
    // A proxy removes the path of PUBLIC_URL, which is no part of the routes.
    stripBasePath: false,
    refResolver: { buildLocalReference: (json) => String(json.$id) },
    // What the library cannot write.
    transformObject: (generated) => {
      if (!('openapiObject' in generated)) throw new Error('The document is not OpenAPI 3.')
      const { components: { schemas = {} } = {}, paths = {} } = generated.openapiObject
      describeReferences(schemas as Record<string, Schema>, components)
      for (const [path, item] of Object.entries(paths)) {
        const operation = item?.get as Operation
        completeOperation(operation, examples[operation.operationId] ?? {})
        operation['x-codeSamples'] = codeSamples(shown, path)
      }
      return generated.openapiObject
    },
  })
  const send = memoryFile(JSON_TYPE, () => JSON.stringify(app.swagger()))
  app.get('/openapi.json', { schema: { hide: true }, compress: false }, send)
})

/** Address in a document: its URL, which may be relative. */
interface Server {
  url: string
  description?: string
}

/** The path of an operation begins with a slash, so this is the address without its last one. */
const OWN_SERVER: Server = { url: '/', description: 'The service that serves this document' }

/** Returns the addresses of the service. Postman and Bruno take the first one, and need an absolute one. */
function serversOf({ PORT, PUBLIC_URL, DEMO_TOKENS }: Config): Server[] {
  if (PUBLIC_URL !== undefined) return [{ url: withoutSlash(PUBLIC_URL) }]
  // Other services do not know their address.
  if (DEMO_TOKENS === undefined) return [OWN_SERVER]
  const description = 'The service with sample data, from its own computer'
  return [{ url: `http://127.0.0.1:${PORT}`, description }, OWN_SERVER]
}

const withoutSlash = (url: string) => url.replace(/\/+$/, '')

const JSON_TYPE = 'application/json; charset=utf-8'

/** Describes every error. The heading of each `code` is its anchor on the page /docs. */
function errorCodes(): string {
  const sections = Object.entries(ProblemCodes).map(
    ([code, { status, cause, action }]) =>
      `### \`${code}\`\n\n**${status} ${titleOf(code as ProblemCode)}.**\n\n**Cause:** ${cause}\n\n**Remedy:** ${action}\n`,
  )
  return sections.join('\n')
}
