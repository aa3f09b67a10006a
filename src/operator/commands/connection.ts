import { randomInt } from 'node:crypto'
import { text } from 'node:stream/consumers'
import type { Command } from 'commander'
import type { Kysely } from 'kysely'
import { OperatorError } from '../../operator-error.ts'
import type { Tables } from '../../postgres/tables.ts'
import { connectionKey, isConnectionKey, tokenHash } from '../../postgres/tokens.ts'
import { examples, nonEmpty, type Run, shortText } from '../command.ts'
import { findApp } from '../database.ts'
import { deleteConnection, describeRows } from '../deletion.ts'
import { isViolation, UsageError } from '../errors.ts'
import { openInputs } from '../loading/source.ts'
import { table } from '../output.ts'

export function addConnectionCommands(program: Command, run: Run): void {
  const connection = program
    .command('connection')
    .description("connections: a user's link to a bank or broker; each belongs to one app")
  addCreate(connection, run)
  addList(connection, run)
  addDelete(connection, run)
}

function addCreate(connection: Command, run: Run): void {
  connection
    .command('create')
    .description('create a connection and show its token, once')
    .requiredOption('--app <name>', 'its app', nonEmpty)
    .option('--token-file <file>', 'file with its token; generated if absent', nonEmpty)
    .option('--label <text>', 'a name for people', shortText)
    .addHelpText('after', examples('connection create --app my-app --label "Savings plan"'))
    .action(async (options: { app: string; tokenFile?: string; label?: string }) => {
      const { app, tokenFile, label } = options
      const token = tokenFile === undefined ? newToken() : await readToken(tokenFile)
      await run(async ({ db }) => {
        const json = await createConnection(db, { app, token, label })
        const text = `Connection ${json.id} of ${app}. Its token is shown only now:\n${json.token}`
        return { json, text }
      })
    })
}

function addList(connection: Command, run: Run): void {
  connection
    .command('list')
    .description('list the connections of an app, without secrets')
    .requiredOption('--app <name>', 'the app', nonEmpty)
    .addHelpText('after', examples('connection list --app my-app'))
    .action(({ app }: { app: string }) =>
      run(async ({ db }) => {
        const items = await listConnections(db, app)
        const headings = ['id', 'label', 'portfolio', 'account', 'changed']
        const rows = items.map(({ id, label, changedAt, ...counts }) => {
          return [id, label, counts.portfolioTransactions, counts.accountTransactions, changedAt]
        })
        return {
          json: { items },
          text: table(headings, rows, `The app ${app} has no connections.`),
        }
      }),
    )
}

function addDelete(connection: Command, run: Run): void {
  connection
    .command('delete')
    .description('delete a connection and all its rows, immediately and permanently')
    .argument('[id]', 'id of the connection, from `connection list`')
    .option('--token-file <file>', 'file with its token, instead of the id; - is standard input')
    .option('--app <name>', 'the app that it must belong to', nonEmpty)
    .addHelpText(
      'after',
      examples(
        'connection delete 4611686018427387904 --app my-app',
        'connection delete --token-file - < token.txt',
      ),
    )
    .action(async (id: string | undefined, options: { tokenFile?: string; app?: string }) => {
      const reference = await readReference({ id, ...options })
      await run(async ({ db }) => {
        const json = await deleteConnection(db, await findConnection(db, reference))
        const text = `Connection ${json.id} of ${json.app} is deleted with ${describeRows(json)}.`
        return { json, text }
      })
    })
}

interface ConnectionOptions {
  id?: string | undefined
  tokenFile?: string | undefined
  /** Token in the environment: used without `id` and `tokenFile`. */
  token?: string | undefined
  app?: string | undefined
}

type ConnectionReference = ({ id: string } | { token: string }) & { app?: string | undefined }

/** @throws UsageError unless there is either a valid id or a token */
export async function readReference(options: ConnectionOptions): Promise<ConnectionReference> {
  const { id, tokenFile, token, app } = options
  if (id !== undefined && tokenFile === undefined) {
    if (isConnectionKey(id)) return { id, app }
    // The value may be a token, so the message must not contain it.
    throw new UsageError(
      'The id of a connection is a number: `connection list --app NAME` shows it. A token is ' +
        'read from a file: --token-file FILE.',
    )
  }
  if (tokenFile !== undefined && id === undefined) return { token: await readToken(tokenFile), app }
  if (token !== undefined && id === undefined) return { token, app }
  throw new UsageError('Give the id of the connection, or a file with its token (--token-file).')
}

/** Reads a token from a file. As an argument, it would reach npm's log, `ps` and the shell's history. */
async function readToken(path: string): Promise<string> {
  const [input] = await openInputs([path])
  const token = input ? (await text(input.chunks)).replace(/\r?\n$/, '') : ''
  if (token !== '') return token
  throw new OperatorError(`There is no token in ${input?.name}.`)
}

/**
 * Finds a connection by its id or token. With `app`, it must belong to this app.
 * @returns its id
 * @throws OperatorError when there is none
 */
export async function findConnection(db: Kysely<Tables>, reference: ConnectionReference) {
  const app = reference.app === undefined ? undefined : await findApp(db, reference.app)
  const hash = 'token' in reference ? tokenHash(reference.token) : undefined
  const id = 'id' in reference ? reference.id : connectionKey(tokenHash(reference.token))
  const connection = await db
    .selectFrom('connection')
    .select('id')
    .where('id', '=', id)
    .$if(hash !== undefined, (query) => query.where('token_hash', '=', hash ?? Buffer.alloc(0)))
    .$if(app !== undefined, (query) => query.where('app_id', '=', app?.id ?? ''))
    .executeTakeFirst()
  if (connection) return connection.id
  const none = app ? `The app ${app.name} has no connection` : 'There is no connection'
  throw new OperatorError(
    'id' in reference
      ? `${none} ${id}: \`connection list --app NAME\` shows those of an app.`
      : `${none} with this token.`,
  )
}

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
// 131 bits: a person with the id or the ETag cannot guess the token.
const TOKEN_LENGTH = 22

/** Every character is equally likely and unpredictable. */
function newToken(): string {
  return Array.from({ length: TOKEN_LENGTH }, () => ALPHABET[randomInt(ALPHABET.length)]).join('')
}

/**
 * Creates a connection of an app. The database has only the hash of its token (contract 21).
 * @throws OperatorError when the app does not exist, or a connection with this key exists
 */
async function createConnection(
  db: Kysely<Tables>,
  parameters: { app: string; token: string; label: string | undefined },
) {
  const app = await findApp(db, parameters.app)
  const { token, label = null } = parameters
  const hash = tokenHash(token)
  const id = connectionKey(hash)
  try {
    await db
      .insertInto('connection')
      .values({ id, app_id: app.id, token_hash: hash, label })
      .execute()
    return { id, token }
  } catch (error) {
    // Two tokens share a key, 8 bytes of the hash, with a probability of 1 in 2^64.
    if (!isViolation(error, 'connection_pkey')) throw error
    throw new OperatorError(
      'A connection with this token exists already: a token is unique in the whole database.',
    )
  }
}

/** @throws OperatorError when the app does not exist */
async function listConnections(db: Kysely<Tables>, appName: string) {
  const app = await findApp(db, appName)
  const rows = await db
    .selectFrom('connection')
    .where('app_id', '=', app.id)
    .selectAll()
    .orderBy('created_at')
    .orderBy('id')
    .execute()
  return rows.map((row) => ({
    id: row.id,
    label: row.label,
    createdAt: row.created_at,
    changedAt: row.changed_at,
    portfolioTransactions: Number(row.portfolio_transactions),
    accountTransactions: Number(row.account_transactions),
  }))
}
