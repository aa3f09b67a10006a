import openapiTypescript, { astToString } from 'openapi-typescript'
import { parseExactly } from '../../src/http/openapi/demo-responses.ts'

/** What is kept in the repository of the document, and is made anew by the script named here. */
export const DOCUMENT = new URL('../../docs/openapi.json', import.meta.url)
export const CLIENT_TYPES = new URL('../../docs/openapi.ts', import.meta.url)
export const RENEWAL = 'npm run docs:renew'

/** JSON as it is kept: a member a line, every digit as it was. */
export function kept(json: string): string {
  return `${JSON.stringify(parseExactly(json), null, 2)}\n`
}

/** The TypeScript types of the document, for clients. */
export async function clientTypes(document: string): Promise<string> {
  const types = astToString(await openapiTypescript(document))
  return `// Made of openapi.json by \`${RENEWAL}\`.\n${types}`
}
