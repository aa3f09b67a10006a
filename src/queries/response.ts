import { type Expression, type RawBuilder, type SelectQueryBuilder, sql } from 'kysely'
import { build, type CompiledStatement } from '../postgres/statements.ts'
import type { TransactionTable } from '../postgres/tables.ts'
import { columnOf, columnsOf } from '../schemas/fields.ts'
import type { List } from '../schemas/list.ts'
import {
  type AuthMethod,
  compileForCallers,
  connectionOfApp,
  LOOKUP_COLUMNS,
  type LookupColumns,
  lookupColumns,
} from './connection.ts'
import { p } from './parameters.ts'

/** A statement for each kind of credential. */
export type Query = Record<AuthMethod, CompiledStatement>

/** Compiles a query that reads a lookup without rows. */
export function lookupQuery(query: {
  title: string
  purpose: string
  totalItems: RawBuilder<string | null>
}): Query {
  const { title, purpose, totalItems } = query
  const lookup = (method: AuthMethod) => connectionOfApp(method).select(lookupColumns(totalItems))
  return compileForCallers(title, purpose, lookup, { singleRow: true })
}

/** A list with pages and changes. Its table has the columns that these need. */
export type PagedList = List & { table: TransactionTable }

/** Rows `t` of a list: their conditions and limit. They may use ofLookup(). */
type Rows = SelectQueryBuilder<{ t: { connection_id: string } }, 't', object>

/** Columns that sort the rows of a response, each with its direction. */
export type Order = Readonly<Record<string, 'asc' | 'desc' | 'desc nulls last'>>

/** Selects a value of the lookup. PostgreSQL reads it once, before the first row: rows need no join with the lookup. */
export function ofLookup<T>(value: RawBuilder<T>): RawBuilder<T> {
  return sql<T>`(select ${value} from lookup)`
}

/**
 * Frames rows with their lookup, for each kind of credential: one statement, and so one snapshot. The first row of a
 * response is the lookup, the others have nulls in its columns. The last columns are the fields of an item.
 */
export function responseQuery(query: {
  title: string
  purpose: string
  list: List
  lookup: (method: AuthMethod) => Expression<LookupColumns>
  /** Columns of the lookup after LOOKUP_COLUMNS, and their types in PostgreSQL. */
  columns?: Readonly<Record<string, string>>
  rows: Rows
  order: Order
}): Query {
  const { title, purpose, list, lookup, order } = query
  const ofLookupRow = { ...LOOKUP_COLUMNS, ...query.columns }
  const fields = columnsOf(list.item).map(({ path }) => columnOf(path))
  // If both rows of the union have the same types, and the rows have all columns of their order, PostgreSQL plans no
  // subquery scan, which would copy each column of each row.
  const sortedBy = Object.keys(order).filter((column) => !fields.includes(column))
  const ofItem = [...sortedBy, ...fields]
  const noItem = ofItem.map((column) => sql`(null::${sql.table(list.table)}).${sql.ref(column)}`)
  const noLookup = Object.entries(ofLookupRow).map(([column, type]) =>
    sql`null::${sql.raw(type)}`.as(column),
  )
  let rows = query.rows
    .select(noLookup)
    .select(ofItem.map((column) => build.dynamic.ref<never>(`t.${column}`)))
    .where('t.connection_id', '=', p.connectionKey)
    // If the lookup has found no connection, no row is read.
    .where(ofLookup(sql.ref('connection_id')), 'is not', null)
  for (const [column, direction] of Object.entries(order))
    rows = rows.orderBy(sql`${sql.ref(`t.${column}`)} ${sql.raw(direction)}`)
  const statement = (method: AuthMethod) => sql`
    with lookup as materialized ${lookup(method)}
    select ${sql.join(Object.keys(ofLookupRow).map((column) => sql.ref(column)))}, ${sql.join(noItem)}
    from lookup
    union all
    ${rows}`
  return compileForCallers(title, purpose, statement)
}
