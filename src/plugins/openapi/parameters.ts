import { type Document, operationsOf } from './shared-parts.ts'

const ORDER = ['path', 'query', 'header']

/**
 * Lists the parameters as they are read, the path's first. An example of what may be left out becomes
 * one of its schema: pages on which requests can be tried fill in a parameter's own example, and a day
 * or an entity tag that nobody chose would only hide rows.
 */
export function arrangeParameters(document: Document): void {
  for (const operation of operationsOf(document)) {
    operation.parameters.sort((a, b) => ORDER.indexOf(a.in) - ORDER.indexOf(b.in))
    for (const parameter of operation.parameters) {
      const { example } = parameter
      if (parameter.required || example === undefined) continue
      delete parameter.example
      Object.assign(parameter.schema, { examples: [example] })
    }
  }
}
