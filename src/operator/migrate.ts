import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Kysely, sql } from 'kysely'
import pg from 'pg'
import { OperatorError } from '../operator-error.ts'
import { isMigrating, lockMigrations, migrateOnce } from '../postgres/migrations.ts'
import { plannerSettings } from '../postgres/statements.ts'
import type { Tables } from '../postgres/tables.ts'
import { isViolation } from './errors.ts'

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

export interface ServiceRole {
  password: string | undefined
  /** False on Citus, see plannerSettings(). */
  genericPlans: boolean
}

/**
 * Gives the role of the service its settings and rights in this database. Revokes rights of PUBLIC that the
 * service does not need.
 * @param onNotice receives the statements that would revoke further rights
 * @throws OperatorError with statements for an administrator, if the operator's role lacks the privilege
 */
export async function configureServiceRole(
  db: Kysely<Tables>,
  { password, genericPlans }: ServiceRole,
  onNotice: (sentence: string) => void,
): Promise<void> {
  const settings = Object.entries({ ...SETTINGS, ...plannerSettings(genericPlans) })
  if (password !== undefined && !/^[ -~]+$/.test(password)) {
    throw new OperatorError('SERVICE_DATABASE_PASSWORD must be printable ASCII.')
  }
  const login =
    password && `alter role investment_service login password '${scramVerifier(password)}'`
  const { needed, excess } = await withRetries(db, onNotice, () =>
    db.transaction().execute(async (transaction) => {
      await lockMigrations(transaction)
      const before = await statementsFor(transaction, settings)
      const own = before.isShared ? [] : before.excess
      for (const statement of [...before.needed, ...own]) await attempt(transaction, statement)
      const isDenied = login && !(await attempt(transaction, login))
      // Without the privilege, PostgreSQL may only warn.
      const { needed, excess } = await statementsFor(transaction, settings)
      return { needed: isDenied ? [...needed, login] : needed, excess }
    }),
  )
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

async function attempt(transaction: Kysely<Tables>, statement: string): Promise<boolean> {
  await sql`savepoint attempt`.execute(transaction)
  try {
    await sql.raw(statement).execute(transaction)
    return true
  } catch (error) {
    if (!hasCode(error, INSUFFICIENT_PRIVILEGE)) throw error
    await sql`rollback to attempt`.execute(transaction)
    return false
  }
}

interface Statements {
  /** Grant what the service needs. An administrator may have granted some of it already. */
  needed: string[]
  /** Revoke rights that the service does not need. The role has them as a member of PUBLIC. */
  excess: string[]
  /** True if the database has tables of another owner, whose applications may use these rights. */
  isShared: boolean
}

async function statementsFor(
  db: Kysely<Tables>,
  roleSettings: [string, string][],
): Promise<Statements> {
  const settings = sql.join(roleSettings.map(([name, value]) => sql`(${name}, ${value})`))
  const { rows } = await sql<Statements>`
    select
      array(
        select format('grant connect on database %I to investment_service', current_database())
          where not has_database_privilege('investment_service', current_database(), 'connect')
        union all select 'grant usage on schema public to investment_service'
          where not has_schema_privilege('investment_service', 'public', 'usage')
        union all
        select format('alter role investment_service in database %I set %s = %L',
            current_database(), name, value)
          from (values ${settings}) as setting (name, value)
          where not exists (
            select from pg_db_role_setting join pg_database d on d.oid = setdatabase
            where datname = current_database() and setrole = 'investment_service'::regrole
              and name || '=' || value = any(setconfig))
      ) as needed,
      array(
        select format('revoke temporary on database %I from public', current_database())
          where has_database_privilege('investment_service', current_database(), 'temporary')
        union all
        select format('revoke execute on function %s from public', oid::regprocedure) from pg_proc
          where pronamespace = 'pg_catalog'::regnamespace
            and (proname in ('lo_creat', 'lo_create', 'lo_from_bytea', 'pg_logical_emit_message')
              or proname ~ '^pg_(try_)?advisory_(xact_)?lock')
            and has_function_privilege('investment_service', oid, 'execute')
      ) as excess,
      exists (
        select from pg_class
        where relkind in ('r', 'p') and relpersistence <> 't' and oid >= 16384
          and relowner <> (
            select relowner from pg_class where oid = 'public.kysely_migration'::regclass)
      ) as "isShared"`.execute(db)
  return rows[0] ?? { needed: [], excess: [], isShared: false }
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
): Promise<string[]> {
  await requireRoles(db)
  await closeSchema(db, onNotice)
  if (await isMigrating(db)) onNotice('Another `migrate` is running; waiting for its end.')
  const applied: string[] = []
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

/** @throws OperatorError with a statement for an administrator, if roles are missing and the operator may not create them */
async function requireRoles(db: Kysely<Tables>): Promise<void> {
  const { rows } = await sql<{ name: string }>`
    select name from unnest(array['investment_service', 'investment_writer']) name
    where not exists (select from pg_roles where rolname = name)
      and not (select rolsuper or rolcreaterole from pg_roles where rolname = current_user)`.execute(
    db,
  )
  if (rows.length === 0) return
  const statements = rows.map(({ name }) => `create role ${name};`).join(' ')
  throw new OperatorError(
    'Migrations create the roles of the service and of writers, and this role may not create roles. Nothing was ' +
      `changed. An administrator must run \`${statements}\`. Then try again.`,
  )
}

/**
 * Revokes the right to create objects in the schema public from PUBLIC, which has it in databases of PostgreSQL 14 and
 * earlier. PostgreSQL may prefer a function or an operator of another role to its own, also in migrations.
 * @throws OperatorError with a statement for an administrator, if the operator's role lacks the privilege
 */
async function closeSchema(
  db: Kysely<Tables>,
  onNotice: (sentence: string) => void,
): Promise<void> {
  const isOpen = async () => {
    const { rows } = await sql<{ open: boolean }>`
      select has_schema_privilege('public', 'public', 'create') as open`.execute(db)
    return rows[0]?.open === true
  }
  if (!(await isOpen())) return
  const revoke = 'revoke create on schema public from public'
  await sql
    .raw(revoke)
    .execute(db)
    .catch((error: unknown) => {
      if (!hasCode(error, INSUFFICIENT_PRIVILEGE)) throw error
    })
  // Without the privilege, PostgreSQL may only warn.
  if (await isOpen())
    throw new OperatorError(
      'Every role may create objects in the schema public, and PostgreSQL could prefer them to its own in statements ' +
        `of this role. Nothing was changed. An administrator must run \`${revoke};\`. Then try again.`,
    )
  onNotice('PUBLIC may no longer create objects in the schema public.')
  const { rows } = await sql<{ name: string }>`
    select format('%s of %s', oid::regprocedure, proowner::regrole) as name from pg_proc
    where pronamespace = 'public'::regnamespace and proowner <> current_user::regrole
      and not (select rolsuper from pg_roles r where r.oid = proowner)
    union all
    select format('operator %s of %s', oid::regoperator, oprowner::regrole) from pg_operator
    where oprnamespace = 'public'::regnamespace and oprowner <> current_user::regrole
      and not (select rolsuper from pg_roles r where r.oid = oprowner)`.execute(db)
  if (rows.length > 0)
    throw new OperatorError(
      'Other roles have created functions or operators in the schema public. No migration ran. Drop them, or move ' +
        `them to another schema, then try again: ${rows.map(({ name }) => name).join(', ')}.`,
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
      const isLocked = hasCode(error, LOCK_NOT_AVAILABLE)
      if (attempt === ATTEMPTS || !(isLocked || isConcurrentUpdate(error))) throw error
      if (isLocked) {
        const blocker = await blockerOf(db)
        onNotice(`${blocker} holds a lock that a migration needs; trying again (${attempt}).`)
      }
      await sleep(PAUSE_MS)
    }
  }
}

const INSUFFICIENT_PRIVILEGE = '42501'
const LOCK_NOT_AVAILABLE = '55P03'

function hasCode(error: unknown, sqlState: string): boolean {
  return error instanceof pg.DatabaseError && error.code === sqlState
}

/** True if `migrate` in another database of the server changed the role at the same moment. */
function isConcurrentUpdate(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.message === 'tuple concurrently updated'
}
