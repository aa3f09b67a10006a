import t from 'tap'
import { breakingChanges } from '../../tools/docs/breaking-changes.ts'

type Json = Record<string, unknown>

const field = { type: 'string', maxLength: 10, minLength: 1 }
const decimal = { type: 'number', format: 'decimal' }
const before = {
  security: [{ token: [] }],
  components: {
    schemas: {
      Decimal: decimal,
      Row: {
        type: 'object',
        required: ['id', 'amount'],
        properties: {
          id: field,
          amount: { $ref: '#/components/schemas/Decimal' },
          fee: { anyOf: [{ $ref: '#/components/schemas/Decimal' }, { type: 'null' }] },
          type: { type: 'string', enum: ['BUY', 'SELL'] },
          code: { type: 'string', enum: ['unknown'] },
          note: { type: ['string', 'null'], pattern: '^a' },
          parts: { type: 'array', items: { type: 'integer', minimum: 0, maximum: 9 } },
        },
      },
    },
  },
  paths: {
    '/rows': {
      get: {
        operationId: 'listRows',
        parameters: [
          { name: 'limit', in: 'query', schema: { ...field, default: '5', pattern: '^[0-9]+$' } },
          { name: 'sort', in: 'query', schema: { type: 'string', enum: ['up', 'down'] } },
          { name: 'from', in: 'query', schema: { type: 'string' } },
        ],
        responses: {
          200: {
            headers: { ETag: { required: true, schema: { type: 'string' } } },
            content: { 'application/json': { schema: { $ref: '#/components/schemas/Row' } } },
          },
          404: { headers: {} },
        },
      },
    },
  },
}

type Document = typeof before
type Change = (document: Document & { paths: Record<string, Json> }) => unknown

const operation = (document: Document) => document.paths['/rows'].get
const parameter = (document: Document, at: number) => operation(document).parameters[at]
const row = (document: Document) => document.components.schemas.Row
const property = (
  document: Document,
  name: keyof Document['components']['schemas']['Row']['properties'],
) => row(document).properties[name] as Json
const response = (document: Document) => operation(document).responses[200]

/** Sentences of breaking changes, and the changes. */
const BREAKING: Record<string, Change> = {
  'GET /rows was removed.': ({ paths }) => Reflect.deleteProperty(paths, '/rows'),
  'GET /rows has the operationId rows.': (document) => {
    operation(document).operationId = 'rows'
  },
  'GET /rows needs other credentials.': (document) =>
    Object.assign(document, { security: [{ key: [] }] }),
  'GET /rows: query parameter from was removed.': (document) =>
    operation(document).parameters.pop(),
  'GET /rows: query parameter to is required.': (document) =>
    operation(document).parameters.push({
      name: 'to',
      in: 'query',
      required: true,
      schema: field,
    } as never),
  'GET /rows: query parameter from is required.': (document) =>
    Object.assign(parameter(document, 2) as Json, { required: true }),
  'GET /rows: query parameter limit had the maxLength 10 and has 9.': (document) =>
    Object.assign(parameter(document, 0)?.schema as Json, { maxLength: 9 }),
  'GET /rows: query parameter limit had the minLength 1 and has 2.': (document) =>
    Object.assign(parameter(document, 0)?.schema as Json, { minLength: 2 }),
  'GET /rows: query parameter limit had the default "5" and has "9".': (document) =>
    Object.assign(parameter(document, 0)?.schema as Json, { default: '9' }),
  'GET /rows: query parameter limit had the pattern "^[0-9]+$" and has "^[1-9]+$".': (document) =>
    Object.assign(parameter(document, 0)?.schema as Json, { pattern: '^[1-9]+$' }),
  'GET /rows: query parameter from had the maxLength none and has 3.': (document) =>
    Object.assign(parameter(document, 2)?.schema as Json, { maxLength: 3 }),
  'GET /rows: query parameter from is limited to certain values.': (document) =>
    Object.assign(parameter(document, 2)?.schema as Json, { enum: ['a'] }),
  'GET /rows: query parameter from was of type string and is of type integer.': (document) =>
    Object.assign(parameter(document, 2)?.schema as Json, { type: 'integer' }),
  'GET /rows: query parameter sort no longer has the value "down".': (document) =>
    Object.assign(parameter(document, 1)?.schema as Json, { enum: ['up'] }),
  'GET /rows: response 404 was removed.': (document) =>
    Reflect.deleteProperty(operation(document).responses, '404'),
  'GET /rows: response 200: header ETag was removed.': (document) =>
    Reflect.deleteProperty(response(document).headers, 'ETag'),
  'GET /rows: response 200: header ETag may be absent.': (document) =>
    Object.assign(response(document).headers.ETag, { required: false }),
  'GET /rows: response 200: application/json was removed.': (document) =>
    Reflect.deleteProperty(response(document).content, 'application/json'),
  'Row.id was removed.': (document) => Reflect.deleteProperty(row(document).properties, 'id'),
  'Row.id may be absent.': (document) => row(document).required.shift(),
  'Row.id was of type string and is of type string or null.': (document) =>
    Object.assign(property(document, 'id'), { type: ['string', 'null'] }),
  'Row.id had the maxLength 10 and has none.': (document) =>
    Reflect.deleteProperty(property(document, 'id'), 'maxLength'),
  'Row.amount may be null.': (document) =>
    Object.assign(row(document).properties, { amount: row(document).properties.fee }),
  'Row.type no longer has the value "SELL".': (document) =>
    Object.assign(property(document, 'type'), { enum: ['BUY'] }),
  'Row.type has the new value "GIFT".': (document) =>
    row(document).properties.type.enum.push('GIFT'),
  'Row.type is no longer limited to certain values.': (document) =>
    Reflect.deleteProperty(property(document, 'type'), 'enum'),
  'Row.note had the pattern "^a" and has none.': (document) =>
    Reflect.deleteProperty(property(document, 'note'), 'pattern'),
  'Row.parts[] had the minimum 0 and has -1.': (document) =>
    Object.assign(property(document, 'parts').items as Json, { minimum: -1 }),
  'Row.parts[] had the maximum 9 and has 10.': (document) =>
    Object.assign(property(document, 'parts').items as Json, { maximum: 10 }),
  'Decimal was of type number and is of type string.': (document) =>
    Object.assign(document.components.schemas.Decimal, { type: 'string' }),
  'Decimal had the format "decimal" and has none.': (document) =>
    Reflect.deleteProperty(document.components.schemas.Decimal, 'format'),
}

const COMPATIBLE: Record<string, Change> = {
  nothing: () => {},
  'a new path': ({ paths }) => Object.assign(paths, { '/other': { get: {} } }),
  'a new optional parameter': (document) =>
    operation(document).parameters.push({ name: 'to', in: 'query', schema: field } as never),
  'a wider parameter': (document) =>
    Object.assign(parameter(document, 0)?.schema as Json, { maxLength: 11, minLength: 0 }),
  'a new response': (document) => Object.assign(operation(document).responses, { 410: {} }),
  'a new media type': (document) => Object.assign(response(document).content, { 'text/csv': {} }),
  'a new field': (document) => Object.assign(row(document).properties, { new: field }),
  'a new code of an error': (document) => row(document).properties.code.enum.push('expired'),
  'a field that is never null': (document) =>
    Object.assign(property(document, 'note'), { type: 'string' }),
  'a schema with a name': (document) => {
    Object.assign(document.components.schemas, { Note: property(document, 'note') })
    Object.assign(row(document).properties, { note: { $ref: '#/components/schemas/Note' } })
  },
}

t.test('breaking changes: one sentence each', async (t) => {
  for (const [sentence, change] of Object.entries(BREAKING)) {
    const after = structuredClone(before)
    change(after)
    t.strictSame(breakingChanges(before, after), [sentence])
  }
})

t.test('compatible changes: no sentence', async (t) => {
  for (const [name, change] of Object.entries(COMPATIBLE)) {
    const after = structuredClone(before)
    change(after)
    t.strictSame(breakingChanges(before, after), [], name)
  }
})
