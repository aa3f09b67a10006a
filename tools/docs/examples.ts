import { type Examples, parseExactly } from '../../src/http/openapi/examples.ts'
import { MEDIA_TYPES } from '../../src/schemas/list.ts'
import { DEMO_CONNECTION, DEMO_TOKEN } from '../../test/support/seeded-service.ts'
import type { Service } from '../../test/support/service.ts'

interface Document {
  paths: Record<
    string,
    { get: { operationId: string; responses: { 200: { content: Record<string, object> } } } }
  >
}

/** Gets the examples of the OpenAPI document from a service with the sample data: one for each media type. */
export async function examplesOf({ get }: Pick<Service, 'get'>): Promise<Examples> {
  const { paths } = (await get('/openapi.json')).json() as Document
  const all: Examples = {}
  for (const [path, { get: operation }] of Object.entries(paths)) {
    const { operationId, responses } = operation
    const resource = path.slice(path.indexOf('{token}/') + '{token}/'.length)
    const mediaTypes = Object.keys(responses[200].content)
    const hasPages = mediaTypes.includes(MEDIA_TYPES.csv)
    const examples: Examples[string] = {}
    for (const accept of mediaTypes) {
      const isJson = accept.startsWith(MEDIA_TYPES.json)
      const query = isJson ? '?limit=3' : '?from=2025-01-01'
      const request = hasPages ? `${resource}${query}` : resource
      const options = { token: DEMO_TOKEN, headers: { accept } }
      const { status, text } = await get(`${DEMO_CONNECTION}/${request}`, options)
      if (status !== 200) throw new Error(`${request}: ${status}`)
      const value = isJson ? parseExactly(text) : text
      examples[accept] = { sampleData: { summary: `Sample data: GET …/${request}`, value } }
    }
    all[operationId] = examples
  }
  return all
}
