import { SOMETIMES } from '../../schemas/response-headers.ts'
import { type Document, operationsOf } from './shared-parts.ts'

/** Says of each header whether every answer of its status has it, which a schema cannot say. */
export function requireHeaders(document: Document): void {
  for (const { responses } of operationsOf(document)) {
    for (const { headers } of Object.values(responses)) {
      for (const [name, header] of Object.entries(headers)) {
        if (!SOMETIMES.has(name)) Object.assign(header, { required: true })
      }
    }
  }
}
