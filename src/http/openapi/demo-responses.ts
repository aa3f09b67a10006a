import { readFile } from 'node:fs/promises'
import { type Document, operationsOf } from './document.ts'

interface Source {
  source: string
}

// TypeScript does not know these parts of JSON yet; Node 24 does.
const { parse, rawJSON } = JSON as unknown as {
  parse(text: string, reviver: (key: string, value: unknown, context: Source) => unknown): unknown
  rawJSON(text: string): unknown
}

/** Parses JSON into values that JSON.stringify() writes with the very digits that they had here. */
export function parseExactly(text: string): unknown {
  return parse(text, (_key, value, { source }) =>
    typeof value === 'number' ? rawJSON(source) : value,
  )
}

/**
 * The answer that each operation shows, by its id: the last part of the request for it, about the
 * demo connection, and the file that has it. A test holds that the seeded service answers just so.
 */
export const DEMO_ANSWERS = {
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

/** Reads the answers, with all their digits. */
export async function readDemoAnswers(): Promise<Map<string, Examples>> {
  const answers = new Map<string, Examples>()
  for (const [operationId, { request, file }] of Object.entries(DEMO_ANSWERS)) {
    const value = parseExactly(await readFile(file, 'utf8'))
    answers.set(operationId, { demo: { summary: `GET …/${request}`, value } })
  }
  return answers
}

/** Puts each answer into its operation. */
export function showDemoAnswers(document: Document, answers: Map<string, Examples>): void {
  for (const { operationId, responses } of operationsOf(document)) {
    const json = responses[200]?.content?.['application/json']
    const examples = answers.get(operationId)
    if (json && examples) json.examples = examples
  }
}
