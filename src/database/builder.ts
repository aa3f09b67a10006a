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
import type { Statement } from './statement.ts'
import type { Tables } from './tables.ts'

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
