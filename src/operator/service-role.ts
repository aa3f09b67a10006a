import { type Kysely, sql } from 'kysely'
import pg from 'pg'
import { PLANNER_SETTINGS } from '../database/planner.ts'
import type { Tables } from '../database/tables.ts'
import { Failure } from './failure.ts'
import { scramVerifier } from './scram.ts'

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
 * @throws Failure that tells an administrator what to run, where the operator's role may not do it
 */
export async function configureServiceRole(
  db: Kysely<Tables>,
  password: string | undefined,
): Promise<void> {
  if (password !== undefined && !/^[ -~]+$/.test(password)) {
    throw new Failure('SERVICE_DATABASE_PASSWORD may hold only printable ASCII characters.')
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
    throw new Failure(
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
