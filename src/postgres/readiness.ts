import { sql } from 'kysely'
import { missingFrom } from '../../migrations/index.ts'
import { withDeadline } from '../limits/deadline.ts'
import { Unavailable } from '../limits/unavailable.ts'
import type { Database } from './database.ts'
import {
  hasState,
  isPoolerTimeout,
  isStandby,
  rejectionOf,
  ServerIsStandby,
  SqlState,
} from './failures.ts'
import { PROBE_MS } from './server.ts'
import { compile, type Parameter, type Statement } from './statements.ts'

export const serverStatement = compile(
  'server',
  'Reads version, role and migrations of the server, and the rights of the login.',
  sql`
    select current_setting('server_version'), pg_is_in_recovery(),
      not row_security_active(to_regclass('public.connection')),
      string_agg(name, ',' order by name)
    from public.kysely_migration`,
)

export const refreshesStatement = compile(
  'refreshes',
  'Counts connections of a random sample by the time since their last refresh.',
  sql`select refreshed, connections from sample_refreshes()`,
)

/** @throws Unavailable. If PostgreSQL denies a right, its error is the cause */
export async function readServer(db: Pick<Database, 'probe' | 'allowsStandby'>) {
  const rows = await db.probe(serverStatement, []).catch((error: unknown) => {
    if (hasState(error, SqlState.denied) || !hasState(error, SqlState.schemaBehind)) throw error
    return undefined
  })
  const [version, standby, seesAll, names] = rows?.shift() ?? []
  // Without a pooler, a standby rejects the connection (connect.ts).
  if (standby === 't' && !db.allowsStandby) throw new ServerIsStandby('the server is a standby')
  const applied = names?.split(',') ?? []
  return {
    /** Version of PostgreSQL; undefined if no migration was ever applied. */
    version,
    isStandby: standby === 't',
    /** True for a superuser, and for the owner of the tables. */
    seesAllRows: seesAll === 't',
    newest: applied.at(-1),
    missing: missingFrom(new Set(applied)),
  }
}

/** A list, and all statements that its requests run, for a caller who does not exist: none of them reads a row. */
export interface ListProbe {
  list: string
  reads: { statement: Statement; values: Parameter[] }[]
}

/**
 * Time without another probe of a list, in ms, unless PostgreSQL has refused the last one: a check of all lists takes nine
 * statements, and the probe of a locked list occupies a connection.
 */
const PAUSE_MS = 10_000

/** Finds lists that PostgreSQL refuses to read, for example because a right or a column is missing. */
class ListChecks {
  /** Messages of PostgreSQL by list. */
  readonly unreadable = new Map<string, string>()
  readonly #db: Pick<Database, 'probe'>
  readonly #probes: readonly ListProbe[]
  readonly #onChange: (list: string, cause: string | undefined) => void
  readonly #dueAt = new Map<string, number>()
  #running: Promise<void> | undefined

  constructor(
    db: Pick<Database, 'probe'>,
    probes: readonly ListProbe[],
    onChange: (list: string, cause: string | undefined) => void,
  ) {
    this.#db = db
    this.#probes = probes
    this.#onChange = onChange
  }

  /** True if PostgreSQL refuses to read every list. */
  get allUnreadable(): boolean {
    return this.unreadable.size > 0 && this.unreadable.size === this.#probes.length
  }

  /** Reads the lists that are due, one after the other: a check takes one connection from the requests. */
  check(): Promise<void> {
    this.#running ??= this.#checkAll().finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  async #checkAll(): Promise<void> {
    for (const probe of this.#probes) {
      const dueAt = this.#dueAt.get(probe.list) ?? 0
      if (performance.now() >= dueAt) await this.#checkList(probe)
    }
  }

  async #checkList({ list, reads }: ListProbe): Promise<void> {
    try {
      for (const { statement, values } of reads) {
        const rows = await this.#db.probe(statement, values)
        rows.discard()
      }
      this.#set(list, undefined)
    } catch (error) {
      const cause = rejectionOf(error)
      if (cause !== undefined) {
        this.#set(list, cause)
        return
      }
      // After a lock or a timeout, the last result stays.
    }
    this.#dueAt.set(list, performance.now() + PAUSE_MS)
  }

  #set(list: string, cause: string | undefined): void {
    if (this.unreadable.get(list) === cause) return
    if (cause === undefined) this.unreadable.delete(list)
    else this.unreadable.set(list, cause)
    this.#onChange(list, cause)
  }
}

/** State of the database. Requests of at least one list succeed only when it is `ready`. */
export type Readiness =
  | 'ready'
  | 'unanswered'
  | 'standby'
  | 'schema behind'
  | 'denied'
  | 'unreadable'

export interface Check {
  readiness: Readiness
  /** Undefined if the server did not respond to this probe. */
  server?: Awaited<ReturnType<typeof readServer>>
  /** Lists that PostgreSQL refuses to read, with its messages. */
  unreadable: ReadonlyMap<string, string>
}

/** Time for which a result is reused, in ms: at most four probes a second. */
const FRESH_MS = 250

/**
 * Returns a function that checks the primary in less than a second. Concurrent callers share one probe.
 * @param onListChange called with the message of PostgreSQL when it refuses to read a list, and without one when the
 * list can be read again
 */
export function checkOf(
  db: Pick<Database, 'probe' | 'state' | 'allowsStandby'>,
  probes: readonly ListProbe[],
  onListChange: (list: string, cause: string | undefined) => void,
): () => Promise<Check> {
  const lists = new ListChecks(db, probes, onListChange)
  const { unreadable } = lists
  let last: Promise<Check> | undefined
  const forget = () => {
    last = undefined
  }
  const check = async (): Promise<Check> => {
    const startedAt = performance.now()
    try {
      const server = await readServer(db)
      if (server.missing.length > 0) return { readiness: 'schema behind', server, unreadable }
      const leftMs = Math.max(0, startedAt + PROBE_MS - performance.now())
      // A locked table does not delay the result.
      await withDeadline(lists.check(), leftMs, () => {})
      return { readiness: lists.allUnreadable ? 'unreadable' : 'ready', server, unreadable }
    } catch (error) {
      if (hasState(error, SqlState.denied)) return { readiness: 'denied', unreadable }
      if (isStandby(error)) return { readiness: 'standby', unreadable }
      // It may have waited for a lock, or behind requests, also in PgBouncer.
      const isUnsent = error instanceof Unavailable && !error.cause
      const isLate = isUnsent || isPoolerTimeout(error) || hasState(error, SqlState.locked)
      const isReady = isLate && db.state().primary.responding && !lists.allUnreadable
      return { readiness: isReady ? 'ready' : 'unanswered', unreadable }
    }
  }
  return () => {
    last ??= check().finally(() => setTimeout(forget, FRESH_MS).unref())
    return last
  }
}
