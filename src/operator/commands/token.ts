import { randomBytes } from 'node:crypto'
import { type Command, InvalidArgumentError } from 'commander'
import { type Kysely, sql } from 'kysely'
import { OperatorError } from '../../operator-error.ts'
import type { Tables } from '../../postgres/tables.ts'
import { tokenHash } from '../../postgres/tokens.ts'
import { Uuid } from '../../schemas/fields.ts'
import { examples, nonEmpty, type Run, SECONDS } from '../command.ts'
import { findApp } from '../database.ts'
import { table } from '../output.ts'

export function addTokenCommands(program: Command, run: Run): void {
  const token = program.command('token')
  addIssue(token, run)
  addList(token, run)
  addRevoke(token, run)
}

function addIssue(token: Command, run: Run): void {
  token
    .command('issue')
    .description('issue a token and show it, once; other tokens of the app stay valid')
    .requiredOption('--app <name>', 'the app', nonEmpty)
    .option('--ttl <duration>', 'its lifetime: 90d, 12h, 30m; default: it never expires', lifetime)
    .addHelpText('after', examples('token issue --app my-app --ttl 90d'))
    .action(({ app, ttl }: { app: string; ttl?: number }) =>
      run(async ({ db }) => {
        const json = await issueToken(db, app, ttl)
        const end = json.expiresAt
          ? `is valid until ${json.expiresAt.toISOString()}`
          : 'never expires (see --ttl), and is valid until it is revoked'
        const text = `Token ${json.id} of ${app} ${end}. It is shown only now:\n${json.token}`
        return { json, text }
      }),
    )
}

function addList(token: Command, run: Run): void {
  token
    .command('list')
    .description('list the tokens of an app, without secrets')
    .requiredOption('--app <name>', 'the app', nonEmpty)
    .addHelpText('after', examples('token list --app my-app'))
    .action(({ app }: { app: string }) =>
      run(async ({ db }) => {
        const items = await listTokens(db, app)
        const headings = ['id', 'status', 'created', 'expires', 'revoked']
        const rows = items.map((t) => [t.id, t.status, t.createdAt, t.expiresAt, t.revokedAt])
        return { json: { items }, text: table(headings, rows, `The app ${app} has no tokens.`) }
      }),
    )
}

function addRevoke(token: Command, run: Run): void {
  token
    .command('revoke')
    .description('revoke a token, immediately and permanently')
    .argument('<id>', 'id of the token, from `token list`', uuid)
    .addHelpText('after', examples('token revoke 0b6f3c52-8e1d-4a97-b1c4-5d2e7f90a863'))
    .action((id: string) =>
      run(async ({ db }) => {
        const json = await revokeToken(db, id)
        return { json, text: `Token ${id} is revoked since ${json.revokedAt?.toISOString()}.` }
      }),
    )
}

/** Parses a lifetime such as `90d`, `12h` or `30m`, of 36,500 days at most. Returns seconds. */
function lifetime(text: string): number {
  const [, count = '', unit = ''] = /^([0-9]{1,10})([smhdw])$/.exec(text) ?? []
  const seconds = Number(count) * (SECONDS[unit as keyof typeof SECONDS] ?? 0)
  if (seconds > 0 && seconds <= 36_500 * SECONDS.d) return seconds
  throw new InvalidArgumentError('Write a number and s, m, h, d or w, up to 36500d.')
}

function uuid(value: string): string {
  if (new RegExp(String(Uuid.pattern)).test(value)) return value
  throw new InvalidArgumentError('The id is a UUID: `token list --app NAME` shows it.')
}

/** Identifies a token for secret scanners. */
const PREFIX = 'idq_'

/**
 * Issues a bearer token to an app. The database has only its hash (contract 20).
 * @param ttlSeconds undefined: the token does not expire
 * @throws OperatorError when the app does not exist
 */
async function issueToken(db: Kysely<Tables>, appName: string, ttlSeconds: number | undefined) {
  const app = await findApp(db, appName)
  const token = PREFIX + randomBytes(32).toString('base64url')
  const { id, expiresAt } = await db
    .insertInto('app_token')
    .values({
      app_id: app.id,
      token_hash: tokenHash(token),
      expires_at: sql`now() + make_interval(secs => ${ttlSeconds ?? null})`,
    })
    .returning(['id', 'expires_at as expiresAt'])
    .executeTakeFirstOrThrow()
  return { id, token, expiresAt }
}

/** @throws OperatorError when the app does not exist */
async function listTokens(db: Kysely<Tables>, appName: string) {
  const app = await findApp(db, appName)
  return await db
    .selectFrom('app_token')
    .where('app_id', '=', app.id)
    .select([
      'id',
      'created_at as createdAt',
      'expires_at as expiresAt',
      'revoked_at as revokedAt',
      sql<'valid' | 'expired' | 'revoked'>`case
        when revoked_at is not null then 'revoked'
        when expires_at <= now() then 'expired'
        else 'valid' end`.as('status'),
    ])
    .orderBy('created_at')
    .orderBy('id')
    .execute()
}

/**
 * Revokes a token immediately and permanently. A revoked token keeps its time of revocation.
 * @throws OperatorError when the token does not exist
 */
async function revokeToken(db: Kysely<Tables>, id: string) {
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
  if (revoked) return revoked
  throw new OperatorError(
    `There is no token ${id}: \`token list --app NAME\` shows those of an app.`,
  )
}
