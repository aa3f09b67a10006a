import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { SECURITY_HEADERS } from '../../src/http/headers.ts'

interface Reference {
  $ref: string
}

interface Header {
  schema: { type: string }
  /** Whether every answer has it. */
  required?: boolean
}

/** What HTTP itself needs, and what is on every answer. */
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

/** What the document says of one status of an operation. */
export interface Promised {
  headers: Map<string, Header>
  /** The name of the body's schema; undefined where there is no body. */
  body: Reference | undefined
  examples: Record<string, { value: unknown }>
}

/** The document as a program reads it that holds answers against it. */
export function readContract(text: string) {
  const document: Document = JSON.parse(text)
  const ajv = new Ajv2020({ strict: false, allErrors: true, formats: { decimal: true } })
  formats.default(ajv)
  ajv.addSchema(document, 'document')

  function resolved<T extends object>(part: T | Reference): T {
    if (!('$ref' in part)) return part
    const [, , kind = '', name = ''] = part.$ref.split('/')
    return document.components[kind]?.[name] as T
  }

  function promisedBy(response: DocumentedResponse | Reference): Promised {
    const { headers, content } = resolved(response)
    const json = content?.['application/json']
    return {
      headers: new Map(
        Object.entries(headers).map(([name, header]) => [name.toLowerCase(), resolved(header)]),
      ),
      body: json?.schema,
      examples: json?.examples ?? {},
    }
  }

  function faultsOf(value: unknown, schema: object): string {
    const { $ref } = schema as Partial<Reference>
    // Either way, what was compiled is kept for the next value.
    const validate = $ref === undefined ? ajv.compile(schema) : ajv.getSchema(`document${$ref}`)
    if (validate === undefined) throw new Error(`the document has no ${$ref}`)
    return validate(value) ? '' : ajv.errorsText(validate.errors)
  }

  return {
    /** By operation id and status. */
    responses: new Map(
      Object.values(document.paths).map(({ get }) => [
        get.operationId,
        new Map(
          Object.entries(get.responses).map(([status, response]) => [
            Number(status),
            promisedBy(response),
          ]),
        ),
      ]),
    ),
    /** What is wrong with a value, according to a schema of the document. */
    faultsOf,
    /** What is wrong with the headers of an answer, by their names in small letters. */
    headerFaultsOf(sent: Map<string, string>, { headers }: Promised): string {
      const missing = [...headers].filter(([name, { required }]) => required && !sent.has(name))
      const wrong = [...sent].flatMap(([name, value]) => {
        if (GENERAL.has(name)) return []
        const schema = headers.get(name)?.schema
        if (schema === undefined) return [`${name} is not documented`]
        const faults = faultsOf(schema.type === 'integer' ? Number(value) : value, schema)
        return faults === '' ? [] : [`${name}: ${faults}`]
      })
      return [...missing.map(([name]) => `no ${name}`), ...wrong].join(', ')
    },
  }
}
