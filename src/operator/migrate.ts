import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Kysely, sql } from 'kysely'
import pg from 'pg'
import { OperatorError } from '../operator-error.ts'
import { migrateOnce } from '../postgres/migrations.ts'
import { PLANNER_SETTINGS } from '../postgres/statements.ts'
import type { Tables } from '../postgres/tables.ts'

const ITERATIONS = 4096

/**
 * What PostgreSQL stores of a password (RFC 5802, RFC 7677). Made here, so that the password itself
 * reaches neither the server nor its log.
 * @param password printable ASCII: beyond it, clients differ in how they normalise
 */
export function scramVerifier(password: string, salt: Buffer = randomBytes(16)): string {
  const salted = pbkdf2Sync(password, salt, ITERATIONS, 32, 'sha256')
  const storedKey = createHash('sha256').update(hmac(salted, 'Client Key')).digest('base64')
  const serverKey = hmac(salted, 'Server Key').toString('base64')
  return `SCRAM-SHA-256$${ITERATIONS}:${salt.toString('base64')}$${storedKey}:${serverKey}`
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}

/**
 * How the service's sessions begin in this database, also where a pooler stands between that refuses
 * startup options: they only read, wait for no lock for long, keep the plan of a prepared statement, and
 * never last.
 */
const SETTINGS = {
  default_transaction_read_only: 'on',
  statement_timeout: '5s',
  lock_timeout: '1s',
  idle_in_transaction_session_timeout: '10s',
  ...PLANNER_SETTINGS,
}

/** Any number, as long as nothing else locks it. */
const LOCK = 7_310_452

/**
 * Sets up the role that the service connects as, in this database.
 * @param password makes it a login with this password; absent: its login stays as it is
 * @throws OperatorError that tells an administrator what to run, where the operator's role may not do it
 */
export async function configureServiceRole(
  db: Kysely<Tables>,
  password: string | undefined,
): Promise<void> {
  if (password !== undefined && !/^[ -~]+$/.test(password)) {
    throw new OperatorError('SERVICE_DATABASE_PASSWORD may hold only printable ASCII characters.')
  }
  const statements = await statementsFor(db, password)
  try {
    await db.transaction().execute(async (transaction) => {
      // Of two runs at once, the second would fail over the same row of PostgreSQL's catalogue.
      await sql`select pg_advisory_xact_lock(${sql.lit(LOCK)})`.execute(transaction)
      for (const statement of statements) await sql.raw(statement).execute(transaction)
    })
  } catch (error) {
    const insufficientPrivilege = '42501'
    if (!(error instanceof pg.DatabaseError && error.code === insufficientPrivilege)) throw error
    throw new OperatorError(
      'The schema is up to date, but this role may not configure the role of the service: ' +
        `let an administrator run these statements.\n${statements.join(';\n')};`,
    )
  }
}

async function statementsFor(db: Kysely<Tables>, password: string | undefined): Promise<string[]> {
  const { rows } = await sql<{ name: string; set: string[] }>`
    select quote_ident(datname) as name, coalesce(setconfig, '{}') as set
    from pg_database left join pg_db_role_setting
      on setdatabase = pg_database.oid and setrole = 'investment_service'::regrole
    where datname = current_database()`.execute(db)
  const { name: database, set = [] } = rows[0] ?? {}
  // What an administrator has set already need not be asked for again.
  const settings = Object.entries(SETTINGS)
    .filter(([name, value]) => !set.includes(`${name}=${value}`))
    .map(
      ([name, value]) =>
        `alter role investment_service in database ${database} set ${name} = '${value}'`,
    )
  if (password === undefined) return settings
  const login = `alter role investment_service login password '${scramVerifier(password)}'`
  return [...settings, login]
}

const ATTEMPTS = 30
/**
 * Requests queue behind a migration that waits for its lock, and give up after a fifth of
 * STATEMENT_TIMEOUT_MS: half of that, by default.
 */
const LOCK_TIMEOUT_MS = 500
const PAUSE_MS = 1_000

/**
 * Runs the missing migrations, one after the other. A statement that waits for a lock makes all others
 * wait behind it, so it gives up soon, lets them pass, and tries again a little later.
 * @param onWait is told in a sentence when that happens
 * @returns the names of the migrations that ran
 * @throws OperatorError that tells what an administrator must run, where the operator's role may not do it
 */
export async function migrate(
  db: Kysely<Tables>,
  onWait: (sentence: string) => void,
): Promise<string[]> {
  return await db.connection().execute(async (session) => {
    await sql`set lock_timeout = ${sql.lit(LOCK_TIMEOUT_MS)}`.execute(session)
    const applied: string[] = []
    for (;;) {
      const name = await patiently(session, onWait)
      if (name === undefined) return applied
      applied.push(name)
    }
  })
}

async function patiently(
  session: Kysely<Tables>,
  onWait: (sentence: string) => void,
): Promise<string | undefined> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await migrateOnce(session)
    } catch (error) {
      if (mayNotCreateRole(error)) throw withoutCreateRole()
      if (!isLockTimeout(error) || attempt === ATTEMPTS) throw error
      onWait(`Another session holds a lock that a migration needs; trying again (${attempt}).`)
      await sleep(PAUSE_MS)
    }
  }
}

function isLockTimeout(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '55P03'
}

function mayNotCreateRole(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.message.includes('denied to create role')
}

function withoutCreateRole(): OperatorError {
  return new OperatorError(
    'A migration makes the role that the service connects as, and this role may make none: ' +
      'let an administrator run `create role investment_service;`, and try again.',
  )
}
