import type { Static, TObject } from '@sinclair/typebox'
import { type Expression, sql } from 'kysely'
import { compile } from '../database/builder.ts'
import type { Statement } from '../database/statement.ts'
import { type CallerKind, forEachCaller } from './calling-app.ts'
import { type Flat, flatFields } from './flat.ts'
import { HEAD_COLUMNS, type HeadColumns } from './head.ts'

export interface StatementParts<Item extends TObject> {
  /** Unique among the statements of the service. */
  name: string
  item: Item
  /** The head's columns, and whatever else of the look-up the rows refer to. */
  head: (kind: CallerKind) => Expression<HeadColumns>
  /** The fields of `item` by their names; the SELECT may refer to `head`. */
  rows: Expression<Flat<Static<Item>>>
}

/**
 * Puts head and rows together into one statement, for each way in which a caller can be known. The head
 * is computed once, and comes first; the rows follow it, with nulls in the head's columns, so that what
 * is said once per answer is not sent a thousand times.
 */
export function replyStatements<Item extends TObject>(
  parts: StatementParts<Item>,
): Record<CallerKind, Statement> {
  const fields = flatFields(parts.item).map((field) => sql.id('rows', field.name))
  const nothing = sql.join(fields.map(() => sql`null`))
  const head = sql.join(HEAD_COLUMNS.map((column) => sql.ref(`head.${column}`)))
  const noHead = sql.join(HEAD_COLUMNS.map(() => sql`null`))
  return forEachCaller((kind) =>
    compile(
      `${parts.name} by ${kind}`,
      sql`with head as materialized ${parts.head(kind)}
        select ${head}, ${nothing} from head
        union all
        select ${noHead}, ${sql.join(fields)} from head cross join lateral ${parts.rows} as rows`,
    ),
  )
}
