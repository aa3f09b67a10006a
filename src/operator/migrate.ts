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
  ...PLANNER_SETTINGS,
}

/** Advisory lock. Nothing else uses this number. */
const LOCK = 7_310_452

/**
 * Configures the role of the service in this database.
 * @param password allows login with this password; absent: the login does not change
 * @throws OperatorError with statements for an administrator, if the operator's role lacks the privilege
 */
export async function configureServiceRole(db: Kysely<Tables>, password: string | undefined) {
  if (password !== undefined && !/^[ -~]+$/.test(password)) {
    throw new OperatorError('SERVICE_DATABASE_PASSWORD must be printable ASCII.')
  }
  const statements = await statementsFor(db, password)
  try {
    await db.transaction().execute(async (transaction) => {
      // Two concurrent runs would update the same row of the catalogue, and the second would fail.
      await sql`select pg_advisory_xact_lock(${sql.lit(LOCK)})`.execute(transaction)
      for (const statement of statements) await sql.raw(statement).execute(transaction)
    })
  } catch (error) {
    if (!hasCode(error, INSUFFICIENT_PRIVILEGE)) throw error
    throw new OperatorError(
      'The schema is up to date, but this role may not configure the role of the service. ' +
        `An administrator must run these statements:\n${statements.join(';\n')};`,
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
  // An administrator may have applied some settings already.
  const settings = Object.entries(SETTINGS)
    .filter(([name, value]) => !set.includes(`${name}=${value}`))
    .map(
      ([name, value]) =>
        `alter role investment_service in database ${database} set ${name} = '${value}'`,
    )
  if (password === undefined) return settings
  return [...settings, `alter role investment_service login password '${scramVerifier(password)}'`]
}

const ATTEMPTS = 30
/** Half of a request's lock timeout, by default: requests queue behind a migration that waits. */
const LOCK_TIMEOUT_MS = 500
const PAUSE_MS = 1_000

/**
 * Runs the missing migrations in order. All statements queue behind one that waits for a lock. A
 * migration therefore stops waiting soon, lets them pass, and tries again later.
 * @param onWait receives a sentence for each new attempt
 * @returns the names of the migrations that ran
 * @throws OperatorError with a statement for an administrator, if the operator's role lacks the
 *   privilege
 */
export async function migrate(db: Kysely<Tables>, onWait: (sentence: string) => void) {
  return await db.connection().execute(async (session) => {
    await sql`set lock_timeout = ${sql.lit(LOCK_TIMEOUT_MS)}`.execute(session)
    const applied: string[] = []
    for (;;) {
      const name = await migrateWithRetries(session, onWait)
      if (name === undefined) return applied
      applied.push(name)
    }
  })
}

async function migrateWithRetries(session: Kysely<Tables>, onWait: (sentence: string) => void) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await migrateOnce(session)
    } catch (error) {
      if (error instanceof pg.DatabaseError && error.message.includes('denied to create role')) {
        throw new OperatorError(
          'A migration creates the role of the service, and this role may not create roles. An ' +
            'administrator must run `create role investment_service;`. Then try again.',
        )
      }
      if (!hasCode(error, LOCK_NOT_AVAILABLE) || attempt === ATTEMPTS) throw error
      onWait(`Another session holds a lock that a migration needs; trying again (${attempt}).`)
      await sleep(PAUSE_MS)
    }
  }
}

const INSUFFICIENT_PRIVILEGE = '42501'
const LOCK_NOT_AVAILABLE = '55P03'

function hasCode(error: unknown, sqlState: string): boolean {
  return error instanceof pg.DatabaseError && error.code === sqlState
}
