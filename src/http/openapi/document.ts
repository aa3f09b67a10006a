import { STATUS_CODES } from 'node:http'
import { isDeepStrictEqual } from 'node:util'
import { PART } from '../../schemas/fields.ts'
import { OPTIONAL_HEADERS } from '../../schemas/headers.ts'
import { parts } from '../../schemas/lists.ts'
import { codeSamples, PLACEHOLDER } from '../docs-page/code-samples.js'

type Parts = Record<string, object>
type Schema = Record<string, unknown>

interface Parameter {
  name: string
  in: string
  required?: boolean
  example?: unknown
  schema: object
}

interface Operation {
  operationId: string
  parameters: Parameter[]
  responses: Record<string, { headers: Parts; content?: Record<string, { examples?: object }> }>
  'x-codeSamples'?: ReturnType<typeof codeSamples>
}

export interface Document {
  servers: { url: string }[]
  components: Record<string, Parts>
  paths: Record<string, Record<string, Operation>>
}

export function operationsOf({ paths }: Document): Operation[] {
  return Object.values(paths).flatMap((path) => Object.values(path))
}

/** Statuses that have different responses, or that not all operations have. */
const OWN_RESPONSES = ['200', '410', '412']

/** Moves shared parts to the components. Generated clients get one type for each. */
export function shareParts(document: Document): void {
  const shared = { parameters: {} as Parts, headers: {} as Parts, responses: {} as Parts }
  /** A different part of the same name stays in place. */
  const share = (type: keyof typeof shared, name: string, place: Parts, key: string) => {
    const part = place[key]
    if (part === undefined) return
    shared[type][name] ??= part
    if (!isDeepStrictEqual(shared[type][name], part)) return
    place[key] = { $ref: `#/components/${type}/${name}` }
  }
  for (const { parameters, responses } of operationsOf(document)) {
    for (const [index, { name }] of parameters.entries())
      share('parameters', name, parameters as object as Parts, String(index))
    for (const [status, { headers }] of Object.entries(responses)) {
      for (const name of Object.keys(headers)) share('headers', name, headers, name)
      const name = STATUS_CODES[status]?.replaceAll(' ', '')
      if (name && !OWN_RESPONSES.includes(status)) share('responses', name, responses, status)
    }
  }
  Object.assign(document.components, shared)
}

const named = new Map<unknown, Schema>(parts.map((part) => [part[PART], part]))

/**
 * Adds the parts to the components. Each copy in a field becomes a reference. Drops
 * `additionalProperties`: a later release may add fields (docs/compatibility.md).
 */
export function nameParts({ components }: Document): void {
  const schemas = { ...components.schemas }
  for (const { [PART]: name, ...part } of parts) schemas[String(name)] = part
  components.schemas = withReferences(schemas)
}

const ANNOTATIONS = ['title', 'description', 'examples']

function withReferences<T>(schema: T): T {
  if (Array.isArray(schema)) return schema.map(withReferences) as T
  if (typeof schema !== 'object' || schema === null) return schema
  const keywords = Object.entries(schema).filter(([key]) => key !== 'additionalProperties')
  const { [PART]: name, type } = schema as Schema
  const part = named.get(name)
  if (!part)
    return Object.fromEntries(keywords.map(([key, value]) => [key, withReferences(value)])) as T
  const reference = { $ref: `#/components/schemas/${name}` }
  const own = keywords.filter(
    ([key, value]) => ANNOTATIONS.includes(key) && !isDeepStrictEqual(value, part[key]),
  )
  const nullable = { anyOf: [reference, { type: 'null' }] }
  return { ...(Array.isArray(type) ? nullable : reference), ...Object.fromEntries(own) } as T
}

const ORDER = ['path', 'query', 'header']

/**
 * Sorts the parameters: path, query, headers. The example of an optional parameter moves to its schema:
 * A page that sends requests would send it by default, and a default `from` hides rows.
 */
export function arrangeParameters(document: Document): void {
  for (const { parameters } of operationsOf(document)) {
    parameters.sort((a, b) => ORDER.indexOf(a.in) - ORDER.indexOf(b.in))
    for (const parameter of parameters) {
      const { example } = parameter
      if (parameter.required || example === undefined) continue
      delete parameter.example
      Object.assign(parameter.schema, { examples: [example] })
    }
  }
}

/** Marks the headers that every response of a status has, which a JSON schema cannot express. */
export function requireHeaders(document: Document): void {
  for (const { responses } of operationsOf(document)) {
    for (const { headers } of Object.values(responses)) {
      for (const [name, header] of Object.entries(headers)) {
        // A 400 is compressed, and so has Vary, only if it lists many errors.
        const isOptional = name === 'Vary' ? !('ETag' in headers) : OPTIONAL_HEADERS.has(name)
        if (!isOptional) Object.assign(header, { required: true })
      }
    }
  }
}

/** Adds samples to each operation as `x-codeSamples`, the name that Redoc and Scalar read, too. */
export function addCodeSamples(document: Document): void {
  const [server] = document.servers
  const address = server?.url.startsWith('http') ? server.url : PLACEHOLDER
  for (const [path, { get }] of Object.entries(document.paths))
    if (get) get['x-codeSamples'] = codeSamples(address, path)
}
