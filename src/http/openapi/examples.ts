import { readFile } from 'node:fs/promises'

declare global {
  /** Parts of ECMAScript that Node 24 has and TypeScript 6 does not declare. */
  interface JSON {
    parse(text: string, reviver: Reviver): unknown
    rawJSON(text: string): unknown
  }
}
/** `source` is the text of a primitive value; undefined for objects and arrays. */
type Reviver = (key: string, value: unknown, context: { source?: string }) => unknown

/** Parses JSON without rounding: JSON.stringify() writes each number with its original digits. */
export function parseExactly(text: string): unknown {
  return JSON.parse(text, (_key, value, { source }) =>
    typeof value === 'number' && source !== undefined ? JSON.rawJSON(source) : value,
  )
}

/** Examples of 200 by operation and media type: responses with the sample data. `npm run docs:renew` writes them. */
export const EXAMPLES = new URL('examples.json', import.meta.url)
export type Examples = Record<string, Record<string, { demo: { summary: string; value: unknown } }>>

export async function readExamples(): Promise<Examples> {
  return parseExactly(await readFile(EXAMPLES, 'utf8')) as Examples
}
