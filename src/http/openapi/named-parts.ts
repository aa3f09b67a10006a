import { isDeepStrictEqual } from 'node:util'
import { PART } from '../../schemas/fields.ts'
import { parts } from '../../schemas/lists.ts'

type Schema = Record<string, unknown>

const named = new Map<unknown, Schema>(parts.map((part) => [part[PART], part]))

/** Adds the parts, and refers to them. Drops `additionalProperties`: a later release may add fields. */
export function nameParts(schemas: Record<string, object>): Record<string, object> {
  const own = parts.map(({ [PART]: name, ...part }) => [name, part])
  return withReferences({ ...schemas, ...Object.fromEntries(own) })
}

const ANNOTATIONS = ['description', 'examples']

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
