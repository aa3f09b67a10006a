import { hash } from 'node:crypto'
import { Kysely, PostgresDialect, type RawBuilder, sql } from 'kysely'
import type { Tables } from '../../migrations/tables.ts'

/** Compiled SELECT. A connection prepares a named statement once. */
export interface Statement {
  name: string
  /** Name without the digest of the text, for metrics and traces. */
  title: string
  text: string
  /** True for a lookup: it takes no memory of responses, and is small even in a large request. */
  singleRow?: boolean
}

export type Parameter = string | Buffer | null

/** Returns the statement without a name: it is then not prepared. */
export const unnamed = (statement: Statement): Statement => ({ ...statement, name: '' })

/** Builds and compiles SELECT statements. It never opens its pool. */
export const build = new Kysely<Tables>({
  dialect: new PostgresDialect({ pool: () => Promise.reject(new Error('there is no pool')) }),
})

/** Parameter of a compiled statement, such as `$1`. A statement may use it several times. */
export function parameter<T>(position: number, type: string): RawBuilder<T> {
  return sql.raw<T>(`$${position}::${type}`)
}

/** Returns the first day of a month; infinity stays. No index serves coalesce(): row-level security finds it leaky. */
export function firstOfMonth(day: RawBuilder<string>): RawBuilder<string> {
  return sql`case when isfinite(${day}) then ${day} - (extract(day from ${day})::integer - 1) else ${day} end`
}

/** Compiles a SELECT that begins with its purpose. The name has a digest: two releases may share a connection. */
export function compile(title: string, purpose: string, select: RawBuilder<unknown>): Statement {
  const { sql: text, parameters } = sql`-- ${sql.raw(purpose)}\n${select}`.compile(build)
  if (parameters.length > 0) throw new Error(`${title} has values that are not parameters`)
  return { name: `${title.slice(0, 50)} ${digestOf(text)}`, title, text }
}

/** Identifies the text of a statement. */
export const digestOf = (text: string) => hash('sha256', text, 'base64url').slice(0, 12)

/**
 * Settings of a role or a database that would make the statements fail or wait: without `public`, the tables are not
 * found; with row security off, PostgreSQL rejects each read that a policy restricts; a standby rejects serializable.
 */
export const requiredSettings = {
  search_path: 'public',
  row_security: 'on',
  default_transaction_isolation: 'read committed',
}

/** Returns settings as options of the start of a connection, in which a space needs a backslash. */
export const startupOptions = (settings: Record<string, string | number>) =>
  Object.entries(settings)
    .map(([name, value]) => `-c ${name}=${String(value).replaceAll(' ', '\\ ')}`)
    .join(' ')

/**
 * A connection plans each statement once, even on an empty table. PostgreSQL would then keep a scan or sort.
 * @param genericPlans false on Citus, which must know the connection to plan a statement
 */
export const plannerSettings = (genericPlans: boolean) => ({
  plan_cache_mode: genericPlans ? 'force_generic_plan' : 'auto',
  jit: 'off',
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
  enable_sort: 'off',
})
