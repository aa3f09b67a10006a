import { readFile } from 'node:fs/promises'
import swagger from '@fastify/swagger'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import packageJson from '../../../package.json' with { type: 'json' }
import type { Config } from '../../config.ts'
import { markdown } from '../../schemas/fields.ts'
import { lists } from '../../schemas/lists.ts'
import { type ProblemCode, ProblemCodes, titleOf } from '../../schemas/problem.ts'
import { codeSamples, PLACEHOLDER } from '../docs-page/code-samples.js'
import { memoryFile } from '../memory-file.ts'
import document from './document.json' with { type: 'json' }
import { readExamples } from './examples.ts'
import { nameParts } from './named-parts.ts'
import { describeList, sharedParts } from './operation.ts'

const GUIDE = new URL('guide.md', import.meta.url)

/** Serves the OpenAPI document. The first request generates it, with the schemas that requests are compared with. */
export const openapi = fp(async (app: FastifyInstance, { config }: { config: Config }) => {
  const { CONTACT_URL, PUBLIC_URL } = config
  const [appToken, connectionToken] = config.DEMO_TOKENS?.split(',') ?? []
  const address = PUBLIC_URL?.replace(/\/+$/, '')
  const shown = address ?? PLACEHOLDER
  const guide = (await readFile(GUIDE, 'utf8')).replaceAll(PLACEHOLDER, shown)
  const examples = await readExamples()
  const shared = sharedParts(config.MAX_LIMIT)
  await app.register(swagger, {
    openapi: {
      ...document,
      info: {
        ...document.info,
        version: packageJson.version,
        description: `${guide}\n${errorCodes()}`,
        ...(CONTACT_URL === undefined ? {} : { contact: { url: CONTACT_URL } }),
      },
      // The path of an operation begins with a slash.
      servers: [
        address === undefined
          ? { url: '/', description: 'The service that serves this document' }
          : { url: address },
      ],
      // The page /docs fills them in.
      ...(appToken ? { 'x-demo-tokens': { appToken, connectionToken } } : {}),
      components: { ...document.components, ...shared } as object,
    },
    // A proxy removes the path of PUBLIC_URL, which is no part of the routes.
    stripBasePath: false,
    refResolver: { buildLocalReference: (json) => String(json.$id) },
    transform: ({ schema, url }) => ({
      url,
      schema: { ...schema, params: {}, querystring: {}, headers: {}, response: {} },
    }),
    transformObject: (generated) => {
      if (!('openapiObject' in generated)) throw new Error('The document is not OpenAPI 3.')
      const { components = {}, paths = {} } = generated.openapiObject
      components.schemas = nameParts(components.schemas ?? {})
      for (const [path, item] of Object.entries(paths)) {
        const operation = item?.get
        const list = lists.find(({ operationId }) => operationId === operation?.operationId)
        if (!operation || !list) continue
        Object.assign(operation, describeList(list, shared, examples[list.operationId] ?? {}), {
          'x-codeSamples': codeSamples(shown, path),
        })
      }
      return generated.openapiObject
    },
  })
  const send = memoryFile(JSON_TYPE, () => JSON.stringify(app.swagger()))
  app.get('/openapi.json', { schema: { hide: true }, compress: false }, send)
})

const JSON_TYPE = 'application/json; charset=utf-8'

/** Describes every error. The heading of each `code` is its anchor on the page /docs. */
function errorCodes(): string {
  const sections = Object.entries(ProblemCodes).map(
    ([code, { status, detail, action }]) =>
      `### \`${code}\`\n\n**${status} ${titleOf(code as ProblemCode)}.** ${markdown(detail)} ${action}\n`,
  )
  return sections.join('\n')
}
