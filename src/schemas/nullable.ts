import { Kind, type Static, type TSchema, type TUnsafe, Type } from '@sinclair/typebox'
import type { Annotations } from './described.ts'

/**
 * The schema, or null where the fact is not known (contract item 10: a field is never left out).
 * It is written as a list of types, `["string", "null"]`, which is how JSON Schema 2020-12 and so
 * OpenAPI 3.1 say it, and which client generators turn into `string | null`. The schema needs a
 * `type` of its own: a reference or a union does not have one.
 */
export function Nullable<T extends TSchema>(
  schema: T,
  annotations: Annotations,
): TUnsafe<Static<T> | null> {
  return Type.Unsafe<Static<T> | null>({
    ...schema,
    ...annotations,
    type: [schema.type, 'null'],
    // TypeBox would otherwise go on taking it for the schema that it was, which refuses null.
    [Kind]: 'Unsafe',
  })
}
