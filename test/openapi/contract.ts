import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { SECURITY_HEADERS } from '../../src/http/request-context.ts'

interface Reference {
  $ref: string
}

interface Header {
  schema: { type: string }
  /** True if every response of the status has it. */
  required?: boolean
}

/** Headers that the document does not list: those of HTTP itself, and those of every response. */
const GENERAL = new Set([
  ...['connection', 'content-length', 'content-type', 'date', 'keep-alive', 'transfer-encoding'],
  ...Object.keys(SECURITY_HEADERS),
])

interface DocumentedResponse {
  headers: Record<string, Header | Reference>
  content?: Record<string, { schema: Reference; examples: Record<string, { value: unknown }> }>
}

interface Document {
  components: Record<string, Record<string, unknown>>
  paths: Record<
    string,
    { get: { operationId: string; responses: Record<string, DocumentedResponse | Reference> } }
  >
}

/** A response of the document, with its references resolved. */
export interface ResponseContract {
  /** By name in lower case. */
  headers: Map<string, Header>
  /** Schemas of the body by `Content-Type`; empty if there is no body. */
  bodies: Map<string | null | undefined, Reference>
  examples: Record<string, { value: unknown }>
}

/** Forbids further fields: the document allows them for later releases, and this release has none. */
function closeObjects(_key: string, value: unknown): unknown {
  const { type, properties } = (value ?? {}) as Record<string, unknown>
  return type === 'object' && properties
    ? Object.assign(value as object, { additionalProperties: false })
    : value
}

/** Reads the document, to compare responses with it. */
export function readContract(text: string) {
  const document = JSON.parse(text, closeObjects) as Document
  const ajv = new Ajv2020({ strict: false, allErrors: true, formats: { decimal: true } })
  formats.default(ajv)
  ajv.addSchema(document, 'document')

  function resolved<T extends object>(part: T | Reference): T {
    if (!('$ref' in part)) return part
    const [, , type = '', name = ''] = part.$ref.split('/')
    return document.components[type]?.[name] as T
  }

  function contractOf(response: DocumentedResponse | Reference): ResponseContract {
    const { headers, content } = resolved(response)
    return {
      headers: new Map(
        Object.entries(headers).map(([name, header]) => [name.toLowerCase(), resolved(header)]),
      ),
      bodies: new Map(
        Object.entries(content ?? {}).map(([type, { schema }]) => [
          `${type}; charset=utf-8`,
          schema,
        ]),
      ),
      examples: content?.['application/json']?.examples ?? {},
    }
  }

  /** Errors of a value against a schema of the document; empty if there are none. */
  function errorsOf(value: unknown, schema: object): string {
    const { $ref } = schema as Partial<Reference>
    // Both calls cache the compiled schema.
    const validate = $ref === undefined ? ajv.compile(schema) : ajv.getSchema(`document${$ref}`)
    if (validate === undefined) throw new Error(`The document has no ${$ref}.`)
    return validate(value) ? '' : ajv.errorsText(validate.errors)
  }

  /** Errors of the headers of a response, by name in lower case; empty if there are none. */
  function headerErrorsOf(sent: Map<string, string>, { headers }: ResponseContract): string {
    const missing = [...headers].filter(([name, { required }]) => required && !sent.has(name))
    const wrong = [...sent].flatMap(([name, value]) => {
      if (GENERAL.has(name)) return []
      const schema = headers.get(name)?.schema
      if (schema === undefined) return [`${name} is not documented`]
      const errors = errorsOf(schema.type === 'integer' ? Number(value) : value, schema)
      return errors === '' ? [] : [`${name}: ${errors}`]
    })
    return [...missing.map(([name]) => `no ${name}`), ...wrong].join(', ')
  }

  /** By operation id and status. */
  const responses = new Map(
    Object.values(document.paths).map(({ get }) => [
      get.operationId,
      new Map(
        Object.entries(get.responses).map(([status, response]) => [
          Number(status),
          contractOf(response),
        ]),
      ),
    ]),
  )
  return { responses, errorsOf, headerErrorsOf }
}
