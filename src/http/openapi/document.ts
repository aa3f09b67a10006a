import { isDeepStrictEqual } from 'node:util'
import { OPTIONAL_HEADERS } from '../../schemas/headers.ts'

type Parts = Record<string, object>

interface Parameter {
  name: string
  in: string
  required?: boolean
  example?: unknown
  schema: object
}

/** As much of an OpenAPI operation as is worked on here. */
interface Operation {
  operationId: string
  parameters: Parameter[]
  responses: Record<string, { headers: Parts; content?: Record<string, { examples?: object }> }>
}

export interface Document {
  components: Record<string, Parts>
  paths: Record<string, Record<string, Operation>>
}

export function operationsOf({ paths }: Document): Operation[] {
  return Object.values(paths).flatMap((path) => Object.values(path))
}

/**
 * Says once, among the components, what the operations have in common: parameters, headers, and the
 * answers that have no rows. So a reader sees that they are the same, a generated client has one type
 * for each, and the document is half as long.
 */
export function shareParts(document: Document): void {
  const parameters: Parts = {}
  const headers: Parts = {}
  const responses: Parts = {}
  for (const operation of operationsOf(document)) {
    const byIndex = operation.parameters as object as Parts
    operation.parameters.forEach(({ name }, index) => {
      share(byIndex, String(index), { kind: 'parameters', name, parts: parameters })
    })
    for (const [status, response] of Object.entries(operation.responses)) {
      for (const name of Object.keys(response.headers)) {
        share(response.headers, name, { kind: 'headers', name, parts: headers })
      }
      const name = SHARED_ANSWERS[status]
      if (name) share(operation.responses, status, { kind: 'responses', name, parts: responses })
    }
  }
  Object.assign(document.components, { parameters, headers, responses })
}

/** The answers that are the same for every operation, by their names among the components. */
const SHARED_ANSWERS: Record<string, string> = {
  304: 'NotModified',
  400: 'BadRequest',
  401: 'Unauthorized',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  429: 'TooManyRequests',
  500: 'InternalServerError',
  503: 'ServiceUnavailable',
}

/** Puts what stands in `place` among the parts, and a reference to it there instead. */
function share(
  place: Parts,
  key: string,
  { kind, name, parts }: { kind: string; name: string; parts: Parts },
): void {
  const part = place[key]
  if (part === undefined) return
  parts[name] ??= part
  // What only has the same name stays where it is.
  if (isDeepStrictEqual(parts[name], part)) place[key] = { $ref: `#/components/${kind}/${name}` }
}

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

/** Says of each header whether every answer of its status has it, which a schema cannot say. */
export function requireHeaders(document: Document): void {
  for (const { responses } of operationsOf(document)) {
    for (const { headers } of Object.values(responses)) {
      for (const [name, header] of Object.entries(headers)) {
        if (!OPTIONAL_HEADERS.has(name)) Object.assign(header, { required: true })
      }
    }
  }
}
