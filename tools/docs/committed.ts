import { parseExactly } from '../../src/http/openapi/examples.ts'

/** The committed document. */
export const DOCUMENT = new URL('../../docs/reference/openapi.json', import.meta.url)
/** The command that writes them and the client types. */
export const RENEWAL = 'npm run docs:renew'

/** Formats JSON as committed: one member a line, with all digits. */
export function formatJson(json: string): string {
  return `${JSON.stringify(parseExactly(json), null, 2)}\n`
}
