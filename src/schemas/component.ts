/**
 * Named parts of the contract. A component carries its name as `$id`; whoever serves the contract
 * registers the components once, and everything else points at them by that name. So the published
 * document has one `PortfolioTransaction`, not a copy in every answer, and a generated client has
 * one type for it.
 */
import { type Static, type TSchema, type TUnsafe, Type } from '@sinclair/typebox'

/** A schema that others may refer to by name. */
export type Named<T extends TSchema> = T & { $id: string }

/** The schema under a name, which becomes its key in the document's `components.schemas`. */
export function Component<T extends TSchema>(name: string, schema: T): Named<T> {
  return { ...schema, $id: name }
}

/** A pointer to a component; it has the component's type. */
export function Reference<T extends TSchema>(component: Named<T>): TUnsafe<Static<T>> {
  return Type.Unsafe<Static<T>>(Type.Ref(component.$id))
}
