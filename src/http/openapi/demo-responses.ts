import { readFile } from 'node:fs/promises'
import { type Document, operationsOf } from './document.ts'

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

/**
 * Examples by operation id: the end of the request's URL, and the file with the response. They use the
 * small connection of the sample data. `npm run docs:renew` writes the files.
 */
export const DEMO_RESPONSES = {
  listPortfolioTransactions: {
    request: 'portfolios/transactions?limit=3',
    file: new URL('examples/portfolio-transactions.json', import.meta.url),
  },
  listAccountTransactions: {
    request: 'accounts/transactions?limit=3',
    file: new URL('examples/account-transactions.json', import.meta.url),
  },
  listAssetsTransferOrders: {
    request: 'assets-transfer',
    file: new URL('examples/assets-transfer-orders.json', import.meta.url),
  },
} as const

type Examples = Record<string, { summary: string; value: unknown }>

/** Reads the OpenAPI examples of each operation. */
export async function readDemoResponses(): Promise<Map<string, Examples>> {
  const all = new Map<string, Examples>()
  for (const [operationId, { request, file }] of Object.entries(DEMO_RESPONSES)) {
    const value = parseExactly(await readFile(file, 'utf8'))
    all.set(operationId, { demo: { summary: `GET …/${request}`, value } })
  }
  return all
}

/** Adds the examples to the 200 of their operations. */
export function addExamples(document: Document, examples: Map<string, Examples>): void {
  for (const { operationId, responses } of operationsOf(document)) {
    const json = responses[200]?.content?.['application/json']
    const found = examples.get(operationId)
    if (json && found) json.examples = found
  }
}
