import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { CompiledQuery, type Kysely, sql } from 'kysely'
import { OperatorError } from '../operator-error.ts'
import { isDenied, isLocked } from '../postgres/failures.ts'
import { lockMigrations, migrateOnce } from '../postgres/migrations.ts'
import { plannerSettings } from '../postgres/statements.ts'
import type { Tables } from '../postgres/tables.ts'
import { isCitus } from './database.ts'
import { isViolation } from './errors.ts'
import { type Progress, pluralize } from './output.ts'

const ITERATIONS = 4096

/**
 * Computes the password verifier that PostgreSQL stores (RFC 5802, RFC 7677). The password itself reaches
 * neither the server nor its log.
 * @param password printable ASCII: clients normalise other characters differently
 */
export function scramVerifier(password: string, salt: Buffer = randomBytes(16)): string {
  const salted = pbkdf2Sync(password, salt, ITERATIONS, 32, 'sha256')
  const hmac = (text: string) => createHmac('sha256', salted).update(text).digest()
  const storedKey = createHash('sha256').update(hmac('Client Key')).digest('base64')
  const serverKey = hmac('Server Key').toString('base64')
  return `SCRAM-SHA-256$${ITERATIONS}:${salt.toString('base64')}$${storedKey}:${serverKey}`
}

/** Settings of the role's sessions. PgBouncer may reject them as startup options. */
const SETTINGS = {
  default_transaction_read_only: 'on',
  statement_timeout: '5s',
  lock_timeout: '1s',
  idle_in_transaction_session_timeout: '10s',
}

type Kind = 'role' | 'schema' | 'foreign' | 'needed' | 'excess' | 'shared'

/** Runs rights.sql. @returns a function that returns the statements of some kinds */
async function findRights(db: Kysely<Tables>, settings = {}) {
  const text = await readFile(new URL('rights.sql', import.meta.url), 'utf8')
  const query = CompiledQuery.raw(text, [JSON.stringify(settings)])
  const { rows } = await db.executeQuery<{ kind: Kind; statement: string }>(query)
  return (...kinds: Kind[]) =>
    rows.filter(({ kind }) => kinds.includes(kind)).map(({ statement }) => statement)
}

/** Runs statements without those that this role may not run. Without the privilege, PostgreSQL may only warn. */
async function attempt(db: Kysely<Tables>, statements: string[]): Promise<void> {
  for (const statement of statements)
    await sql
      .raw(`do $$ begin ${statement}; exception when insufficient_privilege then null; end $$`)
      .execute(db)
}

/**
 * Gives the role of the service its settings and rights in this database. Revokes rights of PUBLIC that the
 * service does not need.
 * @param onNotice receives the statements that would revoke further rights
 * @throws OperatorError with statements for an administrator, if the operator's role lacks the privilege
 */
export async function configureServiceRole(
  db: Kysely<Tables>,
  password: string | undefined,
  onNotice: (sentence: string) => void,
): Promise<void> {
  const settings = { ...SETTINGS, ...plannerSettings(!(await isCitus(db))) }
  if (password !== undefined && !/^[ -~]+$/.test(password)) {
    throw new OperatorError('SERVICE_DATABASE_PASSWORD must be printable ASCII.')
  }
  const configure = () =>
    db.transaction().execute(async (transaction) => {
      await lockMigrations(transaction)
      const before = await findRights(transaction, settings)
      await attempt(transaction, before('needed', 'excess'))
      return await findRights(transaction, settings)
    })
  const left = await withRetries(db, onNotice, configure)
  const [needed, excess] = [left('needed'), left('excess', 'shared')]
  if (password !== undefined) {
    const login = `alter role investment_service login password '${scramVerifier(password)}'`
    await withRetries(db, onNotice, () => sql.raw(login).execute(db)).catch((error: unknown) => {
      if (!isDenied(error)) throw error
      needed.push(login)
    })
  }
  if (needed.length > 0) {
    throw new OperatorError(
      'The schema is up to date, but this role may not configure the role of the service. ' +
        `An administrator must run these statements:\n${needed.join(';\n')};`,
    )
  }
  if (excess.length > 0) {
    onNotice(
      'The role of the service can still create temporary tables or large objects, write to the write-ahead log, ' +
        'or take advisory locks. An administrator can ' +
        `run these statements, which apply to all roles in this database:\n${excess.join(';\n')};`,
    )
  }
}

const ATTEMPTS = 30
/** Half of a request's lock timeout, by default: requests queue behind a migration that waits. */
const LOCK_TIMEOUT_MS = 500
const PAUSE_MS = 1_000

const WRONG_YEAR =
  'A time completed_at in the table assets_transfer_order is outside of the years 1 to 9999. The migrations before ' +
  '0009 stay, and running services go on. Correct the rows of ' +
  "`select * from assets_transfer_order where completed_at < '0001-01-01 00:00:00+00' " +
  "or completed_at >= '10000-01-01 00:00:00+00'`. Then run `migrate` again."

/**
 * Runs the missing migrations in order. All statements queue behind one that waits for a lock. A migration therefore
 * stops waiting soon, lets them pass, and tries again later.
 * @param onNotice receives a sentence for each new attempt
 * @returns the names of the migrations that ran
 * @throws OperatorError with a statement for an administrator, if the operator's role lacks the privilege; or with a
 * statement that finds the rows that violate a new constraint
 */
export async function migrate(
  db: Kysely<Tables>,
  onNotice: (sentence: string) => void,
  show: (progress: Progress) => void,
): Promise<string[]> {
  await prepare(db, onNotice)
  const applied: string[] = []
  show(() => ({ step: 'Migrating', done: `${pluralize(applied.length, 'migration')} applied` }))
  for (;;) {
    const name = await withRetries(db, onNotice, () => migrateOnce(db, LOCK_TIMEOUT_MS)).catch(
      (error: unknown) => {
        throw isViolation(error, 'completed_in_years') ? new OperatorError(WRONG_YEAR) : error
      },
    )
    if (name === undefined) return applied
    applied.push(name)
  }
}

/**
 * Revokes the right of PUBLIC to create objects in the schema public. PostgreSQL may prefer a function or an operator of
 * another role to its own, also in migrations.
 * @throws OperatorError with statements for an administrator, if this role may not run them, or not create the roles
 */
async function prepare(db: Kysely<Tables>, onNotice: (sentence: string) => void): Promise<void> {
  const before = await findRights(db)
  requireNone(
    before('role'),
    'Migrations create the roles of the service and of writers, and this role may not create roles.',
  )
  if (before('schema').length === 0) return
  await attempt(db, before('schema'))
  const after = await findRights(db)
  requireNone(
    after('schema'),
    'Every role may create objects in the schema public, and PostgreSQL could prefer them to its own in statements ' +
      'of this role.',
  )
  onNotice('PUBLIC may no longer create objects in the schema public.')
  const foreign = after('foreign')
  if (foreign.length > 0)
    throw new OperatorError(
      'Other roles have created functions or operators in the schema public. No migration ran. Drop them, or move ' +
        `them to another schema, then try again: ${foreign.join(', ')}.`,
    )
}

function requireNone(statements: string[], reason: string): void {
  if (statements.length === 0) return
  const all = statements.map((statement) => `${statement};`).join(' ')
  throw new OperatorError(
    `${reason} Nothing was changed. An administrator must run \`${all}\`. Then try again.`,
  )
}

/** Names the session in the longest transaction that holds a lock on a table of this database. */
async function blockerOf(db: Kysely<Tables>): Promise<string> {
  const { rows } = await sql<{ pid: number; name: string; since: Date }>`
    select a.pid, a.application_name as name, a.xact_start as since
    from pg_locks l join pg_stat_activity a on a.pid = l.pid join pg_class c on c.oid = l.relation
    where l.granted and a.pid <> pg_backend_pid() and a.datname = current_database()
      and c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
    order by a.xact_start limit 1`.execute(db)
  const [found] = rows
  if (found === undefined) return 'Another session'
  const { pid, name, since } = found
  return `A session of ${name || 'an unnamed program'} (process ${pid}, in a transaction since ${since.toISOString()})`
}

async function withRetries<T>(
  db: Kysely<Tables>,
  onNotice: (sentence: string) => void,
  work: () => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work()
    } catch (error) {
      // `migrate` in another database of the server may change the role at the same moment.
      const isRepeatable = isLocked(error) || /tuple concurrently updated$/.test(String(error))
      if (attempt === ATTEMPTS || !isRepeatable) throw error
      if (isLocked(error)) {
        const blocker = await blockerOf(db)
        onNotice(`${blocker} holds a lock that a migration needs; trying again (${attempt}).`)
      }
      await sleep(PAUSE_MS)
    }
  }
}
