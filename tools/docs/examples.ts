import { type Examples, parseExactly } from '../../src/http/openapi/examples.ts'
import { CSV, EXACT_JSON, JSON_TYPE, NDJSON } from '../../src/http/representation.ts'
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
      [JSON_TYPE]: page,
      [EXACT_JSON]: page,
      ...(paged ? { [NDJSON]: rows, [CSV]: rows } : {}),
    }
    const examples: Examples[string] = {}
    for (const [accept, request] of Object.entries(requests)) {
      const options = { token: DEMO_TOKEN, headers: { accept } }
      const { status, text } = await get(`${DEMO_CONNECTION}/${request}`, options)
      if (status !== 200) throw new Error(`${request}: ${status}`)
      const value = accept.startsWith(JSON_TYPE) ? parseExactly(text) : text
      examples[accept] = { demo: { summary: `GET …/${request}`, value } }
    }
    all[operationId] = examples
  }
  return all
}
