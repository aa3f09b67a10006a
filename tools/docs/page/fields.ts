/** Tables of fields and values. A schema of one operation stands beside it; the section Fields has the others. */
import type { TSchema } from '@sinclair/typebox'
import { MEDIA_TYPES } from '../../../src/schemas/list.ts'
import { heading, markdown } from './markdown.ts'
import type { Operation, PageDocument } from './page-document.ts'

type Schemas = PageDocument['components']['schemas']

export const lastPart = (path: string): string => path.slice(path.lastIndexOf('/') + 1)

export function typeOf({ $ref, type, format, anyOf, items }: TSchema): string {
  if ($ref !== undefined) return `<a href="#${lastPart($ref)}">${lastPart($ref)}</a>`
  if (anyOf) return anyOf.map(typeOf).join(' or ')
  if (items) return `list of ${typeOf(items)}`
  return [type ?? '']
    .flat()
    .map((name) => (format && name !== 'null' ? `${name} (${format})` : name))
    .join(' or ')
}

/** Names of the schemas that have a text of their own. Those of the exact media type have the same names. */
export const shownSchemas = (schemas: Schemas): string[] =>
  Object.keys(schemas).filter((name) => !name.startsWith('Exact'))

/** Names of the schemas that a schema refers to, in the order in which a reader meets them. */
function reachedFrom(schema: unknown, schemas: Schemas, found = new Set<string>()): Set<string> {
  if (typeof schema !== 'object' || schema === null) return found
  for (const [key, value] of Object.entries(schema)) {
    if (key !== '$ref') {
      reachedFrom(value, schemas, found)
      continue
    }
    const name = lastPart(String(value))
    if (found.has(name)) continue
    found.add(name)
    reachedFrom(schemas[name], schemas, found)
  }
  return found
}

/** Returns the schemas that only the rows of this operation have. */
export function schemasOf(operation: Operation, { paths, components }: PageDocument): string[] {
  const { schemas } = components
  const of = ({ responses }: Operation) =>
    reachedFrom(responses[200]?.content?.[MEDIA_TYPES.json]?.schema, schemas)
  const others = Object.values(paths).filter(({ get }) => get !== operation)
  const shared = new Set(others.flatMap(({ get }) => [...of(get)]))
  return [...of(operation)].filter((name) => !shared.has(name))
}

/** Describes a schema: its fields, or its values. @param about what the schema is, beside its name */
export function schemaSection(name: string, schemas: Schemas, level: number, about = ''): string {
  const { description = '', properties = {} } = schemas[name] as TSchema
  const rows = Object.entries<TSchema>(properties).map(([field, schema]) => {
    const referenced = schemas[nameOf(schema) ?? '']
    const [text = ''] = (schema.description ?? referenced?.description ?? '').split('\n\n')
    const cells = [`<code>${field}</code>`, typeOf(schema), markdown.parseInline(text)]
    return `<tr id="${name}.${field}">${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr>`
  })
  const head = '<thead><tr><th>Field</th><th>Type</th><th>Meaning</th></tr></thead>'
  const table = rows.length > 0 ? `<table>${head}<tbody>${rows.join('\n')}</tbody></table>` : ''
  const codes = Object.entries<TSchema>(properties).map(([field, schema]) =>
    codeTable(field, schema),
  )
  const text = withAnchors(name, markdown.parse(description) as string)
  return `${heading(level, name, name + about)}${text}${table}${codes.join('')}`
}

/** Gives each value of a type an anchor, such as `PortfolioTransactionType.DIVIDENDS`. */
const withAnchors = (name: string, html: string) =>
  html.replace(/<tr>(?=\n<td><code>([A-Z_]+)<)/g, (_, value) => `<tr id="${name}.${value}">`)

/** Describes the values of a field, each with an anchor. The codes of errors have sections of their own. */
function codeTable(
  field: string,
  { enum: values = [], 'x-enum-descriptions': meanings = [] }: TSchema,
): string {
  if (meanings.length === 0 || values.includes('internal_error')) return ''
  const rows = values.map((value: string, index: number) => {
    const meaning = markdown.parseInline(meanings[index])
    return `<tr id="${value}"><td><code>${value}</code></td><td>${meaning}</td></tr>`
  })
  const head = '<thead><tr><th>Value</th><th>Meaning</th></tr></thead>'
  return `<p>Values of <code>${field}</code>:</p><table>${head}<tbody>${rows.join('\n')}</tbody></table>`
}

function nameOf({ $ref, anyOf, items }: TSchema): string | undefined {
  if ($ref !== undefined) return lastPart($ref)
  const other = anyOf?.[0] ?? items
  return other && nameOf(other)
}
