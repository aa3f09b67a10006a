import { type Command, InvalidArgumentError } from 'commander'
import { Uuid } from '../../schemas/fields.ts'
import { nonEmpty, type Run, withExamples } from '../command.ts'
import { table } from '../output.ts'
import { issueToken, listTokens, parseDuration, revokeToken } from '../tokens.ts'

/** `token issue`, `token list`, `token revoke`. */
export function addTokenCommands(program: Command, run: Run): void {
  const token = program.command('token').description('bearer tokens of apps')
  addIssue(token, run)
  addList(token, run)
  addRevoke(token, run)
}

function addIssue(token: Command, run: Run): void {
  withExamples(
    token
      .command('issue')
      .description('issue a token and show it, once; other tokens of the app stay valid')
      .requiredOption('--app <name>', 'the app', nonEmpty)
      .option('--ttl <duration>', 'its lifetime: 90d, 12h, 30m; unlimited if absent', seconds),
    'token issue --app my-app --ttl 90d',
  ).action(({ app, ttl }: { app: string; ttl?: number }) =>
    run(async ({ db }) => {
      const json = await issueToken(db, { app, ttlSeconds: ttl })
      const end = json.expiresAt ? `until ${json.expiresAt.toISOString()}` : 'until it is revoked'
      const text = `Token ${json.id} of ${app}, valid ${end}. It is shown only now:\n${json.token}`
      return { json, text }
    }),
  )
}

function addList(token: Command, run: Run): void {
  withExamples(
    token
      .command('list')
      .description('list the tokens of an app, without secrets')
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
      .description('revoke a token, immediately and permanently')
      .argument('<id>', 'id of the token, from `token list`', uuid),
    'token revoke 0b6f3c52-8e1d-4a97-b1c4-5d2e7f90a863',
  ).action((id: string) =>
    run(async ({ db }) => {
      const json = await revokeToken(db, id)
      return { json, text: `Token ${id} is revoked since ${json.revokedAt?.toISOString()}.` }
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
