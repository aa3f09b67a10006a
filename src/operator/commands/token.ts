import { randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import { NotInDatabase, OperatorError } from '../../operator-error.ts'
import { tokenHash } from '../../postgres/tokens.ts'
import { type Context, READER_ENDED } from '../command.ts'
import { findApp, isCitus } from '../database.ts'
import { table } from '../table.ts'

export async function issue(
  { db, print }: Context,
  { app: name, ttl }: { app: string; ttl?: number },
) {
  const app = await findApp(db, name)
  // The prefix identifies a token for secret scanners.
  const token = `idq_${randomBytes(32).toString('base64url')}`
  await db.transaction().execute(async (transaction) => {
    // The database has only the hash.
    const { id, expiresAt } = await transaction
      .insertInto('app_token')
      .values({
        app_id: app.id,
        token_hash: tokenHash(token),
        expires_at: sql`now() + make_interval(secs => ${ttl})`,
      })
      .returning(['id', 'expires_at as expiresAt'])
      .executeTakeFirstOrThrow()
    const end = expiresAt
      ? `is valid until ${expiresAt.toISOString()}`
      : 'never expires (see --ttl), and is valid until it is revoked'
    const text = `Token ${id} of ${name} ${end}. It is shown only now:\n${token}`
    // Before the commit: nobody knows of a valid token that could not be written.
    if (!(await print({ json: { id, token, expiresAt }, text })))
      throw new OperatorError(READER_ENDED)
  })
  return {}
}

export async function list({ db }: Context, { app: name }: { app: string }) {
  const app = await findApp(db, name)
  const { rows: items } = await sql<object>`
    select id,
      case when revoked_at is not null then 'revoked' when expires_at <= now() then 'expired'
        else 'valid' end as status,
      created_at as "createdAt", expires_at as "expiresAt", revoked_at as "revokedAt"
    from app_token where app_id = ${app.id} order by created_at, id`.execute(db)
  return { json: { items }, text: table(items, `The app ${name} has no tokens.`) }
}

interface ExpiringToken {
  app: string
  id: string
  expiresAt: Date
  /** Valid tokens of the app that live longer. The app may use the new one already, or another program may. */
  longerTokens: number
}

/** Lists the valid tokens of all apps that expire soon. Fails if there are any, so that a scheduler reports them. */
export async function listExpiring({ db }: Context, { within }: { within: number }) {
  const { rows: items } = await sql<ExpiringToken>`
    with valid as (
      select * from app_token
      where revoked_at is null and (expires_at is null or expires_at > now()))
    select app.name as app, token.id, token.expires_at as "expiresAt",
      (select count(*)::integer from valid other
        where other.app_id = token.app_id
          and (other.expires_at is null or other.expires_at > token.expires_at)) as "longerTokens"
    from valid token join app on app.id = token.app_id
    where token.expires_at <= now() + make_interval(secs => ${within})
    order by token.expires_at, token.id`.execute(db)
  if (items.length === 0) return { json: { items }, text: 'No token expires in this time.' }
  const advice =
    'Issue a new token (`token issue`), or revoke the old one if its app has changed (`token revoke`).'
  return { json: { items }, text: `${table(items)}\n\n${advice}`, failed: true }
}

/** Revokes a token immediately and permanently. A revoked token keeps its time of revocation. */
export async function revoke({ db }: Context, id: string) {
  const missing = `There is no token ${id}: \`token list --app NAME\` shows those of an app.`
  const token = db.selectFrom('app_token').where('id', '=', id)
  const statement = sql<string>`format(
    'update %%s set revoked_at = %L where id = %L and revoked_at is null', coalesce(revoked_at, now()), id)`
  const { update } = await token
    .select(statement.as('update'))
    .executeTakeFirstOrThrow(() => new NotInDatabase(missing))
  // On Citus, each copy of a token is written by itself: a statement for all fails while a server is down.
  const written = (await isCitus(db))
    ? sql<{ server: string; success: boolean; reason: string }>`
        select nodename || ':' || nodeport as server, success, result as reason
        from run_command_on_placements('app_token', ${update}) where not success`
    : sql<never>`${sql.raw(update.replace('%s', 'app_token'))}`
  const { rows: failed } = await written.execute(db)
  const { revokedAt } = await token.select('revoked_at as revokedAt').executeTakeFirstOrThrow()
  const text = `Token ${id} is revoked since ${revokedAt?.toISOString()}`
  const json = { id, revokedAt, failed }
  if (failed.length === 0) return { json, text: `${text}.` }
  const reasons = failed.map(({ server, reason }) => `${server} (${reason})`).join(', ')
  const advice = 'Repeat the command until it succeeds.'
  return { json, text: `${text}, but not on ${reasons}. ${advice}`, failed: true }
}
