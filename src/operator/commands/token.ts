import { randomBytes } from 'node:crypto'
import { type Command, InvalidArgumentError } from 'commander'
import { type Kysely, sql } from 'kysely'
import { OperatorError } from '../../operator-error.ts'
import type { Tables } from '../../postgres/tables.ts'
import { tokenHash } from '../../postgres/tokens.ts'
import { Uuid } from '../../schemas/fields.ts'
import { examples, nonEmpty, type Run, secondsOf } from '../command.ts'
import { findApp, isCitus } from '../database.ts'
import { table } from '../table.ts'

/** Identifies a token for secret scanners. */
const PREFIX = 'idq_'

export function defineToken(token: Command, run: Run): void {
  token
    .command('issue')
    .description('issue a token and show it, once; other tokens of the app stay valid')
    .requiredOption('--app <name>', 'the app', nonEmpty)
    .option('--ttl <duration>', 'its lifetime: 90d, 12h, 30m; default: it never expires', lifetime)
    .addHelpText('after', examples('token issue --app my-app --ttl 90d'))
    .action(({ app: name, ttl = null }: { app: string; ttl?: number | null }) =>
      run(async ({ db }) => {
        const app = await findApp(db, name)
        const token = PREFIX + randomBytes(32).toString('base64url')
        const { id, expiresAt } = await db
          .insertInto('app_token')
          .values({
            app_id: app.id,
            // The database has only the hash (contract 20).
            token_hash: tokenHash(token),
            expires_at: sql`now() + make_interval(secs => ${ttl})`,
          })
          .returning(['id', 'expires_at as expiresAt'])
          .executeTakeFirstOrThrow()
        const end = expiresAt
          ? `is valid until ${expiresAt.toISOString()}`
          : 'never expires (see --ttl), and is valid until it is revoked'
        const text = `Token ${id} of ${name} ${end}. It is shown only now:\n${token}`
        return { json: { id, token, expiresAt }, text }
      }),
    )
  token
    .command('list')
    .description('list the tokens of an app, without secrets')
    .requiredOption('--app <name>', 'the app', nonEmpty)
    .addHelpText('after', examples('token list --app my-app'))
    .action(({ app: name }: { app: string }) =>
      run(async ({ db }) => {
        const app = await findApp(db, name)
        const items = await db
          .selectFrom('app_token')
          .where('app_id', '=', app.id)
          .select(['id', 'created_at as createdAt', 'expires_at as expiresAt'])
          .select('revoked_at as revokedAt')
          .select(
            sql<'valid' | 'expired' | 'revoked'>`case
              when revoked_at is not null then 'revoked'
              when expires_at <= now() then 'expired'
              else 'valid' end`.as('status'),
          )
          .orderBy('created_at')
          .orderBy('id')
          .execute()
        const headings = ['id', 'status', 'created', 'expires', 'revoked']
        const rows = items.map((t) => [t.id, t.status, t.createdAt, t.expiresAt, t.revokedAt])
        return { json: { items }, text: table(headings, rows, `The app ${name} has no tokens.`) }
      }),
    )
  token
    .command('revoke')
    .description('revoke a token, immediately and permanently')
    .argument('<id>', 'id of the token, from `token list`', uuid)
    .addHelpText('after', examples('token revoke 0b6f3c52-8e1d-4a97-b1c4-5d2e7f90a863'))
    .action((id: string) =>
      run(async ({ db }) => {
        const json = await revokeToken(db, id)
        const text = `Token ${id} is revoked since ${json.revokedAt?.toISOString()}`
        if (json.failed.length === 0) return { json, text: `${text}.` }
        const reasons = json.failed.map(({ server, reason }) => `${server} (${reason})`).join(', ')
        const advice = 'Repeat the command until it succeeds.'
        return { json, text: `${text}, but not on ${reasons}. ${advice}`, failed: true }
      }),
    )
}

function lifetime(text: string): number {
  const seconds = secondsOf(text)
  if (seconds > 0 && seconds <= secondsOf('36500d')) return seconds
  throw new InvalidArgumentError('Write a number and s, m, h, d or w, up to 36500d.')
}

function uuid(value: string): string {
  if (new RegExp(String(Uuid.pattern)).test(value)) return value
  throw new InvalidArgumentError('The id is a UUID: `token list --app NAME` shows it.')
}

/**
 * Revokes a token immediately and permanently. A revoked token keeps its time of revocation.
 * @returns `failed`: servers of Citus whose copy of the token is not written
 * @throws OperatorError when the token does not exist
 */
async function revokeToken(db: Kysely<Tables>, id: string) {
  const copies = await revokeCopies(db, id)
  if (copies.length === 0)
    await db
      .updateTable('app_token')
      .set({ revoked_at: sql`now()` })
      .where('id', '=', id)
      .where('revoked_at', 'is', null)
      .execute()
  const revoked = await db
    .selectFrom('app_token')
    .select(['id', 'revoked_at as revokedAt'])
    .where('id', '=', id)
    .executeTakeFirst()
  if (revoked) return { ...revoked, failed: copies.filter(({ success }) => !success) }
  throw new OperatorError(
    `There is no token ${id}: \`token list --app NAME\` shows those of an app.`,
  )
}

/** Writes each copy of a token on Citus by itself: a statement for all fails while a server is down. */
async function revokeCopies(db: Kysely<Tables>, id: string) {
  if (!(await isCitus(db))) return []
  const update = sql<string>`
    format('update %%s set revoked_at = %L where id = %L', coalesce(revoked_at, now()), id)`
  const query = db.selectFrom('app_token').select(update.as('update')).where('id', '=', id)
  const token = await query.executeTakeFirst()
  if (token === undefined) return []
  const copies = sql<{ server: string; success: boolean; reason: string }>`
    select nodename || ':' || nodeport as server, success, result as reason
    from run_command_on_placements('app_token', ${token.update})`
  return (await copies.execute(db)).rows
}
