import { type Examples, parseExactly } from '../../src/http/openapi/examples.ts'
import { MEDIA_TYPES } from '../../src/schemas/list.ts'
import { lists } from '../../src/schemas/lists.ts'
import { DEMO_CONNECTION, DEMO_TOKEN } from '../../test/support/seeded-service.ts'
import type { Service } from '../../test/support/service.ts'

/** Gets the examples of the OpenAPI document from a service with the sample data. */
export async function examplesOf({ get }: Pick<Service, 'get'>): Promise<Examples> {
  const all: Examples = {}
  for (const { operationId, path, paged } of lists) {
    const resource = path.slice('/connections/:token/'.length)
    const page = paged ? `${resource}?limit=3` : resource
    const rows = `${resource}?from=2025-01-01`
    const requests = {
      [MEDIA_TYPES.json]: page,
      [MEDIA_TYPES.exactJson]: page,
      ...(paged ? { [MEDIA_TYPES.ndjson]: rows, [MEDIA_TYPES.csv]: rows } : {}),
    }
    const examples: Examples[string] = {}
    for (const [accept, request] of Object.entries(requests)) {
      const options = { token: DEMO_TOKEN, headers: { accept } }
      const { status, text } = await get(`${DEMO_CONNECTION}/${request}`, options)
      if (status !== 200) throw new Error(`${request}: ${status}`)
      const value = accept.startsWith(MEDIA_TYPES.json) ? parseExactly(text) : text
      examples[accept] = { demo: { summary: `GET …/${request}`, value } }
    }
    all[operationId] = examples
  }
  return all
}
