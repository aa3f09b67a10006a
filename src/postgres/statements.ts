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

/** A SELECT, compiled once. With a name it is prepared once per server connection. */
export interface Statement {
  name: string
  /** The same without the digest of its text, for people. */
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

/** Builds SELECTs, and nothing else, over our tables; it is connected to no database. */
export const build = offline as unknown as ReadonlyKysely<Tables>

/**
 * The place of a parameter, `$1` and so on, in a statement that is compiled once and run with other
 * values each time. One parameter may stand in many places.
 */
export function parameter<T>(position: number, type: string): RawBuilder<T> {
  return sql.raw<T>(`$${position}::${type}`)
}

/** Every statement that has been compiled, by its title: all that the service ever asks. */
export const statements: ReadonlyMap<string, Statement> = new Map()

/**
 * Compiles a SELECT, whose values must all be parameters, under a name that is unique to it. A digest of
 * the text is part of the name: behind a pooler, two releases of the service may share a connection, and
 * neither must run what the other prepared. PostgreSQL cuts names off after 63 bytes, which must not
 * cost any of it.
 */
export function compile(title: string, select: RawBuilder<unknown>): Statement {
  const { sql: text, parameters } = select.compile(offline)
  if (parameters.length > 0) throw new Error(`${title} holds values that are no parameters`)
  const digest = createHash('sha256').update(text).digest('base64url').slice(0, 12)
  const statement = { name: `${title.slice(0, 50)} ${digest}`, title, text }
  const known = statements as Map<string, Statement>
  if (known.has(title)) throw new Error(`${title} is the title of another statement, too`)
  known.set(title, statement)
  return statement
}

/**
 * How PostgreSQL plans what the service asks: once a session, and as what every statement was made for, a
 * look-up by key that reads rows in the order of an index. Left to itself it scans or sorts a table
 * that looks small, because there are no statistics of it yet or it was empty when they were made, and a
 * session would keep to such a plan while the table grows. A test explains every statement.
 */
export const PLANNER_SETTINGS = {
  plan_cache_mode: 'force_generic_plan',
  jit: 'off',
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
  enable_sort: 'off',
}
