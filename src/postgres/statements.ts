import { createHash } from 'node:crypto'
import {
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type RawBuilder,
  sql,
} from 'kysely'
import type { ReadonlyKysely } from 'kysely/readonly'
import type { Tables } from './tables.ts'

/** A SELECT, compiled once. A named statement is prepared once per connection. */
export interface Statement {
  name: string
  /** The name without the digest of the text, for metrics and traces. */
  title: string
  text: string
}

export type Parameter = string | Buffer | null

/** The same statement, not prepared. */
export const unnamed = (statement: Statement): Statement => ({ ...statement, name: '' })

const offline = new Kysely<Tables>({
  dialect: {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  },
})

/** Builds SELECTs over the service's tables. It is connected to no database. */
export const build = offline as unknown as ReadonlyKysely<Tables>

/**
 * A parameter, `$1` and so on, of a statement that is compiled once and run with other values each time.
 * One parameter may stand in many places.
 */
export function parameter<T>(position: number, type: string): RawBuilder<T> {
  return sql.raw<T>(`$${position}::${type}`)
}

/**
 * The first day of a month, from dates alone: a time zone cannot shift it. Infinity stays infinity. It
 * avoids coalesce(), which row-level security treats as leaky: no index would be used.
 */
export function firstOfMonth(day: RawBuilder<string>): RawBuilder<string> {
  return sql`case when isfinite(${day}) then ${day} - (extract(day from ${day})::integer - 1) else ${day} end`
}

/**
 * Compiles a SELECT. All its values must be parameters. The name holds a digest of the text: behind a
 * pooler, two releases may share a connection, and neither must run the other's statement. PostgreSQL
 * truncates names after 63 bytes, so the title gives way to the digest.
 * @param title unique among the statements of the service
 */
export function compile(title: string, select: RawBuilder<unknown>): Statement {
  const { sql: text, parameters } = select.compile(offline)
  if (parameters.length > 0) throw new Error(`${title} holds values that are no parameters`)
  const digest = createHash('sha256').update(text).digest('base64url').slice(0, 12)
  return { name: `${title.slice(0, 50)} ${digest}`, title, text }
}

/**
 * Planner settings of a connection. Each statement is planned once per connection, as a lookup by key
 * in the order of an index. By default PostgreSQL scans or sorts a table that looks small, because it
 * has no statistics yet, and would keep that plan while the table grows. A test explains every statement.
 */
export const PLANNER_SETTINGS = {
  plan_cache_mode: 'force_generic_plan',
  jit: 'off',
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
  enable_sort: 'off',
}
