import openapiTypescript, { astToString } from 'openapi-typescript'
import { parseExactly } from '../../src/http/openapi/demo-responses.ts'

/** The committed document and client types, and the command that writes them. */
export const DOCUMENT = new URL('../../docs/openapi.json', import.meta.url)
export const CLIENT_TYPES = new URL('../../docs/openapi.ts', import.meta.url)
export const RENEWAL = 'npm run docs:renew'

/** Formats JSON as committed: one member a line, with all digits. */
export function formatJson(json: string): string {
  return `${JSON.stringify(parseExactly(json), null, 2)}\n`
}

/** Generates the TypeScript types for clients. */
export async function clientTypes(document: string): Promise<string> {
  const types = astToString(await openapiTypescript(document))
  return `// Made of openapi.json by \`${RENEWAL}\`.\n${types}`
}
