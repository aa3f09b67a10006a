import type { TObject, TSchema } from '@sinclair/typebox'

/**
 * An item of a reply as one row of columns: a member that is an object becomes a column for each of
 * its own members, named `retentionDetail.retentionFrom` and so on. A SELECT whose columns are not
 * those of the response schema, in name or in type, does not compile.
 */
export type Flat<Item> = {
  [K in keyof Item & string as NonNullable<Item[K]> extends object
    ? `${K}.${keyof NonNullable<Item[K]> & string}`
    : K]: NonNullable<Item[K]> extends object
    ? NonNullable<Item[K]>[keyof NonNullable<Item[K]>] | null
    : Item[K]
}

/** One column of a flat row, and where it stands in the item. */
export interface FlatField {
  name: string
  schema: TSchema
  /** The member of the item that this column is a part of, where that is an object. */
  group?: { name: string; first: boolean; last: boolean }
}

/** The columns of an item, in the order in which the reply has them. */
export function flatFields(item: TObject): FlatField[] {
  return Object.entries(item.properties).flatMap(([name, schema]): FlatField[] => {
    if (schema.properties === undefined) return [{ name, schema }]
    const members = Object.entries<TSchema>(schema.properties)
    return members.map(([member, memberSchema], index) => ({
      name: `${name}.${member}`,
      schema: memberSchema,
      group: { name, first: index === 0, last: index === members.length - 1 },
    }))
  })
}
