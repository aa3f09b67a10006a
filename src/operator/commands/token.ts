import { type Command, InvalidArgumentError } from 'commander'
import { Uuid } from '../../schemas/fields.ts'
import { nonEmpty, type Run, withExamples } from '../command.ts'
import { table } from '../output.ts'
import { issueToken, listTokens, parseDuration, revokeToken } from '../tokens.ts'

/** `token issue`, `token list`, `token revoke`: the bearer tokens of apps. */
export function addTokenCommands(program: Command, run: Run): void {
  const token = program.command('token').description('the bearer tokens of the apps')
  addIssue(token, run)
  addList(token, run)
  addRevoke(token, run)
}

function addIssue(token: Command, run: Run): void {
  withExamples(
    token
      .command('issue')
      .description('issue a token, which is shown this once; others of the app stay valid')
      .requiredOption('--app <name>', 'the app that it is for', nonEmpty)
      .option(
        '--ttl <duration>',
        'how long it is valid: 90d, 12h, 30m; always, if absent',
        seconds,
      ),
    'token issue --app my-app --ttl 90d',
  ).action(({ app, ttl }: { app: string; ttl?: number }) =>
    run(async ({ db }) => {
      const issued = await issueToken(db, { app, ttlSeconds: ttl })
      const end = issued.expiresAt
        ? `until ${issued.expiresAt.toISOString()}`
        : 'until it is revoked'
      const text = `Token ${issued.id} of ${app}, valid ${end}. It is shown only now:\n${issued.token}`
      return { json: issued, text }
    }),
  )
}

function addList(token: Command, run: Run): void {
  withExamples(
    token
      .command('list')
      .description('show the tokens of an app, without what is secret')
      .requiredOption('--app <name>', 'the app', nonEmpty),
    'token list --app my-app',
  ).action(({ app }: { app: string }) =>
    run(async ({ db }) => {
      const items = await listTokens(db, app)
      const rows = items.map(({ id, status, createdAt, expiresAt, revokedAt }) => ({
        id,
        status,
        created: createdAt,
        expires: expiresAt,
        revoked: revokedAt,
      }))
      return { json: { items }, text: table(rows, `The app ${app} has no tokens.`) }
    }),
  )
}

function addRevoke(token: Command, run: Run): void {
  withExamples(
    token
      .command('revoke')
      .description('revoke a token: at once, and for good')
      .argument('<id>', 'id of the token, as `token list` shows it', uuid),
    'token revoke 0b6f3c52-8e1d-4a97-b1c4-5d2e7f90a863',
  ).action((id: string) =>
    run(async ({ db }) => {
      const revoked = await revokeToken(db, id)
      const text = `Token ${id} is revoked since ${revoked.revokedAt?.toISOString()}.`
      return { json: revoked, text }
    }),
  )
}

function seconds(value: string): number {
  const duration = parseDuration(value)
  if (duration !== undefined) return duration
  throw new InvalidArgumentError('Write a number and s, m, h, d or w, up to 36500d.')
}

function uuid(value: string): string {
  if (new RegExp(String(Uuid.pattern)).test(value)) return value
  throw new InvalidArgumentError('It is a UUID: `token list --app NAME` shows it.')
}
