import type { TSchema } from '@sinclair/typebox'
import type { FlatField } from './flat.ts'

/** How a value's text becomes JSON: copied, escaped, or read as `t` or `f`. */
export const COPIED = 0
const ESCAPED = 1
export const BOOLEAN = 2

/**
 * The JSON of every row that has nulls in the same columns: all that is the same in them, in as few
 * pieces as there are values between.
 */
export interface Template {
  /** What precedes each value, such as `","amount":`, with the nulls in between. */
  before: Buffer[]
  /** The column that each value comes from, and what becomes of it. */
  columns: number[]
  kinds: number[]
  /** What follows the last value. */
  after: Buffer
}

/** @param isNull whether the column of that number is null */
export function templateOf(fields: FlatField[], isNull: (column: number) => boolean): Template {
  const template: Template = { before: [], columns: [], kinds: [], after: Buffer.of() }
  let text = ''
  for (const [column, { name, schema, group }] of fields.entries()) {
    const comma = column === 0 ? '{' : ','
    const own = JSON.stringify(group ? name.slice(group.name.length + 1) : name)
    if (isNull(column)) {
      // The members of an inner object are null together, and so is the object.
      if (group === undefined) text += `${comma}${own}:null`
      else if (group.first) text += `${comma}${JSON.stringify(group.name)}:null`
      continue
    }
    const opening = group?.first ? `${JSON.stringify(group.name)}:{` : ''
    const quote = isText(schema) ? '"' : ''
    template.before.push(Buffer.from(`${text}${comma}${opening}${own}:${quote}`))
    template.columns.push(column)
    template.kinds.push(kindOf(schema))
    text = `${quote}${group?.last ? '}' : ''}`
  }
  template.after = Buffer.from(`${text}}`)
  return template
}

const typesOf = (schema: TSchema): unknown[] => [schema.type].flat()

function isText(schema: TSchema): boolean {
  return typesOf(schema).includes('string')
}

function kindOf(schema: TSchema): number {
  if (typesOf(schema).includes('boolean')) return BOOLEAN
  // A uuid, a date or one of a closed list holds nothing that JSON would escape.
  const plain = schema.format === 'uuid' || schema.format === 'date' || schema.enum !== undefined
  return isText(schema) && !plain ? ESCAPED : COPIED
}
