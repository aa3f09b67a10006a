import { hash } from 'node:crypto'
import {
  DummyDriver,
  type Expression,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type QueryId,
  type RawBuilder,
  type RootOperationNode,
  sql,
} from 'kysely'
import type { Tables } from './tables.ts'

/** SELECT that a connection prepares once, if it has a name. */
export interface Statement {
  name: string
  /** Name without the digest of the text, for metrics and traces. */
  title: string
  text: string
  /** True for a lookup: it takes no memory of responses, and is small even in a large request. */
  singleRow?: boolean
}

export interface CompiledStatement extends Statement {
  /** The first one is `$1` in the text. */
  parameters: readonly StatementParameter[]
}

/** Value of a parameter, as pg sends it. */
export type Parameter = string | Buffer | null

/** Returns the statement without a name: it is then not prepared. */
export const unnamed = (statement: Statement): Statement => ({ ...statement, name: '' })

/** Stands for a value in the text of a statement, which is compiled before there are values. */
export class StatementParameter {
  readonly name: string
  /** Type in PostgreSQL. */
  readonly type: string

  constructor(name: string, type: string) {
    this.name = name
    this.type = type
  }
}

/** Makes a parameter, to be used in the builder and in `sql`. A statement may use it several times. */
export function parameter<T>(name: string, type: string): RawBuilder<T> {
  return sql<T>`${new StatementParameter(name, type)}`
}

/** Returns the values of a statement in the order of its parameters. */
export function bind(
  { title, parameters }: CompiledStatement,
  values: { [name: string]: Parameter | number | undefined },
): Parameter[] {
  return parameters.map(({ name }) => {
    const value = values[name]
    if (value === undefined) throw new Error(`the statement ${title} needs the value ${name}`)
    return typeof value === 'number' ? String(value) : value
  })
}

/** Writes each parameter with its type, and numbers it once. Kysely would number each use. */
class StatementCompiler extends PostgresQueryCompiler {
  #known: unknown[] = []

  override compileQuery(node: RootOperationNode, queryId: QueryId) {
    this.#known = []
    return super.compileQuery(node, queryId)
  }

  protected override appendValue(value: unknown): void {
    if (!(value instanceof StatementParameter))
      throw new Error('a statement has parameters instead of values')
    if (!this.#known.includes(value)) {
      this.#known.push(value)
      this.addParameter(value)
    }
    this.append(`$${this.#known.indexOf(value) + 1}::${value.type}`)
  }
}

/** Builds SELECT statements. It only compiles them: the pool (pool.ts) runs them. */
export const build = new Kysely<Tables>({
  dialect: {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new StatementCompiler(),
  },
})

/** Returns the first day of a month; infinity stays. No index serves coalesce(): row-level security finds it leaky. */
export function firstOfMonth(day: RawBuilder<string>): RawBuilder<string> {
  return sql`case when isfinite(${day}) then ${day} - (extract(day from ${day})::integer - 1) else ${day} end`
}

/** Compiles a SELECT that begins with its purpose. The name has a digest: two releases may share a connection. */
export function compile(
  title: string,
  purpose: string,
  select: Expression<unknown>,
): CompiledStatement {
  const { sql: text, parameters } = sql`-- ${sql.raw(purpose)}\n${select}`.compile(build)
  return {
    name: `${title.slice(0, 50)} ${digestOf(text)}`,
    title,
    text,
    parameters: parameters as readonly StatementParameter[],
  }
}

/** Identifies the text of a statement. */
const digestOf = (text: string) => hash('sha256', text, 'base64url').slice(0, 12)

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
