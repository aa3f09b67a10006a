import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Kysely, sql } from 'kysely'
import { migrateOnce } from '../../migrations/index.ts'
import { OperatorError } from '../operator-error.ts'
import { hasState, SqlState } from '../postgres/failures.ts'
import type { Tables } from '../postgres/tables.ts'
import { pluralize, showProgress } from './output.ts'
import { prepareRights } from './rights.ts'

const ATTEMPTS = 30
/** Half of a request's lock timeout, by default: requests queue behind a migration that waits. */
const LOCK_TIMEOUT_MS = 500
const PAUSE_MS = 1_000

type Notice = (sentence: string) => void

/**
 * Prepares the roles, and runs the missing migrations. All statements queue behind one that waits for a lock, so a
 * migration waits briefly, lets them pass, and tries again. @returns the names of the migrations that ran
 * @throws OperatorError with statements for an administrator, if this role may not run them. No migration ran then
 */
export async function migrate(
  db: Kysely<Tables>,
  password: string | undefined,
  onNotice: Notice,
): Promise<string[]> {
  if (password !== undefined && !/^[ -~]+$/.test(password))
    throw new OperatorError('SERVICE_DATABASE_PASSWORD must be printable ASCII.')
  const { rows } = await sql<{ encoding: string }>`
    select current_setting('server_encoding') as encoding
    where to_regclass('public.kysely_migration') is null`.execute(db)
  const { encoding = 'UTF8' } = rows[0] ?? {}
  if (encoding !== 'UTF8')
    throw new OperatorError(
      `The database has the encoding ${encoding}, which cannot store all texts: create it with UTF8.`,
    )
  const applied: string[] = []
  using _progress = showProgress(() => {
    return { step: 'Migrating', done: `${pluralize(applied.length, 'migration')} applied` }
  })
  await refuseOtherOwner(db)
  await withRetries(onNotice, () => prepareRights(db, onNotice))
  for (;;) {
    const name = await withRetries(onNotice, () => migrateOnce(db, LOCK_TIMEOUT_MS))
    if (name === undefined) break
    applied.push(name)
  }
  if (password !== undefined) {
    const login = sql`
      alter role investment_service login password ${sql.lit(scramVerifier(password))}`
    await withRetries(onNotice, () => login.execute(db))
  }
  return applied
}

/**
 * A superuser can migrate the database of another role, but the new tables would have another owner than the others.
 * @throws OperatorError if this role does not own the tables. Nothing was changed then
 */
async function refuseOtherOwner(db: Kysely<Tables>): Promise<void> {
  const { rows } = await sql<{ owner: string }>`
    select owner.rolname as owner from pg_class join pg_roles owner on owner.oid = relowner
    where pg_class.oid = to_regclass('public.app') and owner.rolname <> current_user`.execute(db)
  const [other] = rows
  if (other === undefined) return
  throw new OperatorError(
    `The tables belong to ${other.owner}: run \`operator migrate\` as this role, so that new tables belong to it, too.`,
  )
}

/** Computes what PostgreSQL stores (RFC 7677): the password itself reaches neither the server nor its log. */
export function scramVerifier(password: string, salt = randomBytes(16)): string {
  const salted = pbkdf2Sync(password, salt, 4096, 32, 'sha256')
  const hmac = (text: string) => createHmac('sha256', salted).update(text).digest()
  const storedKey = createHash('sha256').update(hmac('Client Key')).digest('base64')
  const keys = `${storedKey}:${hmac('Server Key').toString('base64')}`
  return `SCRAM-SHA-256$4096:${salt.toString('base64')}$${keys}`
}

async function withRetries<T>(onNotice: Notice, work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work()
    } catch (error) {
      // `migrate` in another database of the server may change the role at the same moment.
      const isLocked = hasState(error, SqlState.locked)
      const isRepeatable = isLocked || /tuple concurrently updated$/.test(String(error))
      if (attempt === ATTEMPTS || !isRepeatable) throw error
      if (isLocked)
        onNotice(`Another session holds a lock that a migration needs; trying again (${attempt}).`)
      await sleep(PAUSE_MS)
    }
  }
}
