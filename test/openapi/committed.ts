import { parseExactly } from '../../src/http/openapi/demo-responses.ts'

/** The committed document, and the command that writes it and the client types. */
export const DOCUMENT = new URL('../../docs/openapi.json', import.meta.url)
export const RENEWAL = 'npm run docs:renew'

/** Formats JSON as committed: one member a line, with all digits. */
export function formatJson(json: string): string {
  return `${JSON.stringify(parseExactly(json), null, 2)}\n`
}
