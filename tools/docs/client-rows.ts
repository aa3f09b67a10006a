/**
 * Writes the rows of both clients from the document: types, effects of the types, decimal fields, and the columns of the
 * views of a copy. A new field of the service reaches the clients by `npm run docs:renew`.
 */

interface Schema {
  type?: string | string[]
  format?: string
  description?: string
  enum?: string[]
  'x-share-impact'?: Record<string, string | null>
  $ref?: string
  anyOf?: Schema[]
  items?: Schema
  properties?: Record<string, Schema>
}

type Schemas = Record<string, Schema>

/** A field as both languages need it. */
interface Field {
  name: string
  description: string
  nullable: boolean
  kind: 'text' | 'boolean' | 'decimal' | 'enum' | 'object'
  /** Name of the enum or of the object; otherwise empty. */
  target: string
}

interface RowType {
  name: string
  description: string
  fields: Field[]
}

interface Column {
  /** Path of the field in the row, such as `marketer.name`. */
  path: string
  name: string
  kind: 'text' | 'boolean' | 'decimal'
}

const CLIENTS = new URL('../../clients/', import.meta.url)
const TYPESCRIPT_ROWS = new URL('typescript/src/rows.ts', CLIENTS)
const PYTHON_ROWS = new URL('python/src/investment_data/_rows.py', CLIENTS)

/** The lists, by the name that both clients use for them, with the schema of their rows. */
const LISTS = {
  portfolio_transactions: 'PortfolioTransaction',
  account_transactions: 'AccountTransaction',
  transfer_orders: 'AssetsTransferOrder',
}
const ENUMS = ['PortfolioTransactionType', 'AccountTransactionType']

/**
 * First columns of the view of portfolio transactions in release 1.2.0, which had another order than the document. They
 * stay first, because `select *` of an app depends on the order.
 */
const FIRST_COLUMNS = [
  'transactionId',
  'portfolioId',
  'type',
  'titles',
  'amount',
  'amountBaseCurrency',
  'price',
]

const NOTICE = 'Made from docs/reference/openapi.json by `npm run docs:renew`. Do not edit.'
const LINE_LENGTH = 100

/** Returns the generated files of the clients with their texts. */
export function clientRows(document: string): Map<URL, string> {
  const schemas: Schemas = JSON.parse(document).components.schemas
  refuseUnknownLists(schemas)
  return new Map([
    [TYPESCRIPT_ROWS, typescriptRows(schemas)],
    [PYTHON_ROWS, pythonRows(schemas)],
  ])
}

/** @throws Error if the document has a list that the clients may have forgotten */
function refuseUnknownLists(schemas: Schemas): void {
  const known: string[] = Object.values(LISTS)
  for (const { items, properties } of Object.values(schemas)) {
    const rows = (items ?? properties?.items?.items)?.$ref?.split('/').at(-1)
    if (rows !== undefined && !known.includes(rows.replace(/^Exact/, '')))
      throw new Error(`the clients do not have the list of ${rows}: add it to LISTS`)
  }
}

function named(schemas: Schemas, name: string): Schema {
  const schema = schemas[name]
  if (schema === undefined) throw new Error(`the document has no schema ${name}`)
  return schema
}

/** Returns the first paragraph of a description. The others are tables. */
function summaryOf({ description = '' }: Schema): string {
  const [first = ''] = description.split('\n\n')
  return first
}

function firstSentence(text: string): string {
  const [first = ''] = text.split(/(?<=[.]) /)
  return first
}

function fieldOf(schemas: Schemas, name: string, schema: Schema): Field {
  const choices = schema.anyOf ?? [schema]
  const types = choices.flatMap(({ type = [] }) => type)
  const reference = choices.find(({ $ref }) => $ref !== undefined)?.$ref
  const target = reference?.split('/').at(-1) ?? ''
  const referred = target === '' ? schema : named(schemas, target)
  const description = schema.description ?? firstSentence(summaryOf(referred))
  return {
    name,
    description: schema.format === 'date' ? `${description} Format: YYYY-MM-DD.` : description,
    nullable: types.includes('null'),
    kind: kindOf(name, referred),
    target,
  }
}

function kindOf(name: string, schema: Schema): Field['kind'] {
  const types = [schema.type ?? []].flat()
  if (schema.properties) return 'object'
  if (schema.enum) return 'enum'
  if (schema.format === 'decimal') return 'decimal'
  if (types.includes('boolean')) return 'boolean'
  if (types.includes('string')) return 'text'
  throw new Error(`the clients know no type for the field ${name}`)
}

function rowType(schemas: Schemas, name: string): RowType {
  const schema = named(schemas, name)
  const properties = Object.entries(schema.properties ?? {})
  // How to parse a decimal is not a question of those who use a client.
  const advice = summaryOf(named(schemas, 'Decimal'))
  return {
    name,
    description: summaryOf(schema).replace(advice, '').replaceAll(/ +/g, ' ').trim(),
    fields: properties.map(([field, each]) => fieldOf(schemas, field, each)),
  }
}

/** Returns the rows of the lists, after the objects that they have as fields. */
function rowTypes(schemas: Schemas): RowType[] {
  const rows = Object.values(LISTS).map((name) => rowType(schemas, name))
  const fields = rows.flatMap((row) => row.fields)
  const inner = fields.filter(({ kind }) => kind === 'object').map(({ target }) => target)
  const objects = [...new Set(inner)].map((name) => rowType(schemas, name))
  return [...objects, ...rows]
}

/**
 * Returns the column of a field of an inner object. `marketer.name` is `marketerName`, but
 * `retentionDetail.retentionFrom` is `retentionFrom`, because it begins with the same word.
 */
function columnName(object: string, field: string): string {
  const firstWord = object.replace(/[A-Z].*/, '')
  if (field.startsWith(firstWord)) return field
  return object + field.slice(0, 1).toUpperCase() + field.slice(1)
}

/** Returns the columns of a view after `connection`, `id` and `row`. */
function columnsOf(schemas: Schemas, list: keyof typeof LISTS): Column[] {
  const { fields } = rowType(schemas, LISTS[list])
  const columns = fields.flatMap((field): Column[] => {
    const { name, kind, target } = field
    if (kind !== 'object') return [{ path: name, name, kind: kind === 'enum' ? 'text' : kind }]
    const inner = rowType(schemas, target).fields
    return inner.map((each) => {
      if (each.kind === 'object' || each.kind === 'enum')
        throw new Error(`the views have no column for ${name}.${each.name}`)
      const path = `${name}.${each.name}`
      return { path, name: columnName(name, each.name), kind: each.kind }
    })
  })
  // The view has a column `id` of its own.
  const own = columns.filter(({ name }) => name !== 'id')
  if (list !== 'portfolio_transactions') return own
  const isFirst = ({ name }: Column) => FIRST_COLUMNS.includes(name)
  const rank = ({ name }: Column) => FIRST_COLUMNS.indexOf(name)
  const first = own.filter(isFirst).sort((a, b) => rank(a) - rank(b))
  return [...first, ...own.filter((column) => !isFirst(column))]
}

/** Returns the effect of each type on the position; null if it is not defined. */
function effectsOf(schemas: Schemas): Map<string, string | null> {
  const { 'x-share-impact': effects } = named(schemas, 'PortfolioTransactionType')
  if (effects === undefined) throw new Error('the document has no x-share-impact')
  return new Map(Object.entries(effects))
}

/** Names of all decimal fields, also of inner objects. */
function decimalFields(schemas: Schemas): string[] {
  const fields = rowTypes(schemas).flatMap((row) => row.fields)
  return [
    ...new Set(fields.filter(({ kind }) => kind === 'decimal').map(({ name }) => name)),
  ].sort()
}

/** Breaks a text into lines that fit after a prefix. */
function wrap(text: string, prefix: string): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(/\s+/)) {
    const longer = line === '' ? word : `${line} ${word}`
    if (prefix.length + longer.length > LINE_LENGTH && line !== '') {
      lines.push(line)
      line = word
    } else line = longer
  }
  return [...lines, line]
}

function typescriptComment(text: string, indent: string): string {
  const short = `${indent}/** ${text} */`
  if (short.length <= LINE_LENGTH) return short
  const lines = wrap(text, `${indent} * `).map((line) => `${indent} * ${line}`)
  return [`${indent}/**`, ...lines, `${indent} */`].join('\n')
}

function typescriptType({ kind, target, nullable }: Field): string {
  const names = {
    text: 'string',
    boolean: 'boolean',
    decimal: 'Decimal',
    enum: target,
    object: target,
  }
  return nullable ? `${names[kind]} | null` : names[kind]
}

function typescriptRows(schemas: Schemas): string {
  const enums = ENUMS.map((name) => {
    const values = named(schemas, name).enum ?? []
    return `${typescriptComment(`${summaryOf(named(schemas, name))} The client keeps other texts, too.`, '')}
export type ${name} =
${values.map((value) => `  | '${value}'`).join('\n')}
  | OtherText`
  })
  const effects = [...effectsOf(schemas)].map(
    ([type, effect]) => `  ${type}: ${effect === null ? 'undefined' : `'${effect}'`},`,
  )
  const rows = rowTypes(schemas).map(({ name, description, fields }) => {
    const members = fields.map(
      (field) =>
        `${typescriptComment(field.description, '  ')}\n  ${field.name}: ${typescriptType(field)}`,
    )
    return `${typescriptComment(description, '')}
export interface ${name} {
${members.join('\n')}
}`
  })
  const lists = (Object.keys(LISTS) as (keyof typeof LISTS)[]).map((list) => {
    const columns = columnsOf(schemas, list).map(
      ({ path, name, kind }) => `    { path: '${path}', name: '${name}', kind: '${kind}' },`,
    )
    return `  ${list}: [\n${columns.join('\n')}\n  ],`
  })
  return `// ${NOTICE}
import type { Decimal, OtherText } from './texts.ts'

${enums.join('\n\n')}

/** Effect of a portfolio transaction on the position, by its type. */
export const EFFECTS = {
${effects.join('\n')}
} as const

${rows.join('\n\n')}

/** Column of a view of a copy: path of the field in the row, and name of the column. */
export interface Column {
  path: string
  name: string
  kind: 'text' | 'boolean' | 'decimal'
}

/** Columns of each view, after \`connection\`, \`id\` and \`row\`. */
export const COLUMNS = {
${lists.join('\n')}
} satisfies Record<string, Column[]>
`
}

function pythonDocstring(description: string): string {
  const text = description.replaceAll(/\bnull\b/gi, 'None')
  const short = `    """${text}"""`
  if (short.length <= LINE_LENGTH) return short
  const lines = wrap(text, '    """').map((line) => `    ${line}`)
  return `    """${lines.join('\n').trimStart()}\n    """`
}

function pythonType({ kind, target, nullable }: Field): string {
  const names = {
    text: 'str',
    boolean: 'bool',
    decimal: 'Decimal',
    enum: `Union[${target}, str]`,
    object: target,
  }
  return nullable ? `Optional[${names[kind]}]` : names[kind]
}

function pythonRows(schemas: Schemas): string {
  const enums = ENUMS.map((name) => {
    const values = named(schemas, name).enum ?? []
    const comment = wrap(
      `${summaryOf(named(schemas, name))} The client keeps other texts, too.`,
      '#: ',
    )
    return `${comment.map((line) => `#: ${line}`).join('\n')}
${name} = Literal[
${values.map((value) => `    "${value}",`).join('\n')}
]`
  })
  const effects = [...effectsOf(schemas)].map(
    ([type, effect]) => `    "${type}": ${effect === null ? 'None' : `"${effect}"`},`,
  )
  const rows = rowTypes(schemas).map(({ name, description, fields }) => {
    const members = fields.map(
      (field) => `    ${field.name}: ${pythonType(field)}\n${pythonDocstring(field.description)}`,
    )
    return `class ${name}(TypedDict):
${pythonDocstring(description)}

${members.join('\n')}`
  })
  const lists = (Object.keys(LISTS) as (keyof typeof LISTS)[]).map((list) => {
    const columns = columnsOf(schemas, list).map(
      ({ path, name, kind }) => `        Column("${path}", "${name}", "${kind}"),`,
    )
    return `    "${list}": [\n${columns.join('\n')}\n    ],`
  })
  return `# ${NOTICE}
"""Rows of the service, and the columns of the views of a copy."""

from decimal import Decimal
from typing import Dict, List, Literal, NamedTuple, Optional, TypedDict, Union

${enums.join('\n\n')}

#: \`\`+\`\` adds \`\`titles\`\` to the position, \`\`-\`\` removes them; with \`\`=\`\` they are the size of the position.
PositionEffect = Literal["+", "-", "="]

#: Effect of a portfolio transaction on the position, by its type.
EFFECTS: Dict[str, Optional[PositionEffect]] = {
${effects.join('\n')}
}


${rows.join('\n\n\n')}


#: Names of all decimal fields. The response has them as text.
DECIMAL_FIELDS = frozenset(
    {
${decimalFields(schemas)
  .map((name) => `        "${name}",`)
  .join('\n')}
    }
)


class Column(NamedTuple):
    """Column of a view of a copy: path of the field in the row, and name of the column."""

    path: str
    name: str
    kind: Literal["text", "boolean", "decimal"]


#: Columns of each view, after \`\`connection\`\`, \`\`id\`\` and \`\`row\`\`.
COLUMNS: Dict[str, List[Column]] = {
${lists.join('\n')}
}
`
}
