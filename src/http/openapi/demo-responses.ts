import { readFile } from 'node:fs/promises'
import { CSV, EXACT_JSON, JSON_TYPE, NDJSON } from '../representation.ts'
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

interface DemoResponse {
  operationId: string
  mediaType: string
  request: string
  file: URL
}

function responsesOf(operationId: string, path: string, name: string): DemoResponse[] {
  const isList = path.endsWith('/transactions')
  const page = isList ? `${path}?limit=3` : path
  const rows = `${path}?from=2025-01-01`
  const responses = [
    { mediaType: JSON_TYPE, request: page, file: `${name}.json` },
    { mediaType: EXACT_JSON, request: page, file: `exact-${name}.json` },
    { mediaType: NDJSON, request: rows, file: `${name}.ndjson` },
    { mediaType: CSV, request: rows, file: `${name}.csv` },
  ]
  return responses.slice(0, isList ? 4 : 2).map(({ file, ...response }) => ({
    ...response,
    operationId,
    file: new URL(`examples/${file}`, import.meta.url),
  }))
}

/** Examples of 200 in the OpenAPI document, of the small sample connection. `npm run docs:renew` writes them. */
export const DEMO_RESPONSES = [
  ...responsesOf('listPortfolioTransactions', 'portfolios/transactions', 'portfolio-transactions'),
  ...responsesOf('listAccountTransactions', 'accounts/transactions', 'account-transactions'),
  ...responsesOf('listAssetsTransferOrders', 'assets-transfer', 'assets-transfer-orders'),
]

export const isJson = ({ mediaType }: DemoResponse): boolean => mediaType.startsWith(JSON_TYPE)

interface Example extends DemoResponse {
  value: unknown
}

export function readDemoResponses(): Promise<Example[]> {
  return Promise.all(
    DEMO_RESPONSES.map(async (response) => {
      const text = await readFile(response.file, 'utf8')
      return { ...response, value: isJson(response) ? parseExactly(text) : text }
    }),
  )
}

export function addExamples(document: Document, examples: Example[]): void {
  const operations = new Map(operationsOf(document).map((each) => [each.operationId, each]))
  for (const { operationId, mediaType, request, value } of examples) {
    const content = operations.get(operationId)?.responses[200]?.content?.[mediaType]
    if (content) content.examples = { demo: { summary: `GET …/${request}`, value } }
  }
}
