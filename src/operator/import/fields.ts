import type { TSchema } from '@sinclair/typebox'
import { groupOf, type Rule, ruleOf } from './rules.ts'

/** A member of a JSON object: a scalar, or an object with members of its own. */
export interface Field {
  /** Its name, after that of the object that it is in: `retentionDetail.retentionTo`. */
  path: string
  /** Its own name in quotes, as it stands in the source. */
  quotedName: Buffer
  /** Which of its siblings it is. */
  position: number
  /** Which column is its own, or the first of its own. */
  column: number
  rule: Rule
  members: Fields | undefined
  nullable: boolean
  /** What the column holds where the field is left out; undefined: it may not be. */
  absent: string | null | undefined
}

export interface Fields {
  /** What the paths of the members begin with: `retentionDetail.`, or nothing. */
  prefix: string
  inOrder: readonly Field[]
  byName: ReadonlyMap<string, Field>
}

/**
 * The members that an object schema demands. The names of the columns that they go to, in the order
 * of the members, are appended to `columns`.
 */
export function fieldsOf(schema: TSchema, columns: string[], prefix = ''): Fields {
  const properties = Object.entries<TSchema>(schema.properties)
  const inOrder = properties.map(([name, property], position): Field => {
    const path = `${prefix}${name}`
    const column = columns.length
    const members = property.properties && fieldsOf(property, columns, `${path}.`)
    if (!members) columns.push(columnOf(path))
    return {
      path,
      quotedName: Buffer.from(JSON.stringify(name)),
      position,
      column,
      rule: members ? groupOf([...members.byName.keys()]) : ruleOf(property),
      members,
      nullable: isNullable(property),
      absent: property.default ?? (isNullable(property) ? null : undefined),
    }
  })
  const byName = new Map(inOrder.map((field, index) => [properties[index]?.[0] ?? '', field]))
  return { prefix, inOrder, byName }
}

function isNullable({ type }: TSchema): boolean {
  return Array.isArray(type) && type.includes('null')
}

/** `operationDateDay` goes to operation_date_day, and `marketer.cif` to marketer_cif. */
export function columnOf(path: string): string {
  // The names of these two say by themselves what they are part of.
  const name = path.replace('retentionDetail.', '').replace('.', '_')
  return name.replace(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`)
}
