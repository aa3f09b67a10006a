import { type Command, InvalidArgumentError } from 'commander'
import { nonEmpty, type Run, shortText, withExamples } from '../command.ts'
import {
  type ConnectionReference,
  createConnection,
  findConnection,
  listConnections,
} from '../connections.ts'
import { deleteConnection, describeRows } from '../deletion.ts'
import { UsageError } from '../errors.ts'
import { table } from '../output.ts'

/** `connection create`, `connection list`, `connection delete`. */
export function addConnectionCommands(program: Command, run: Run): void {
  const connection = program
    .command('connection')
    .description('connections: owners of rows, requested by apps')
  addCreate(connection, run)
  addList(connection, run)
  addDelete(connection, run)
}

function addCreate(connection: Command, run: Run): void {
  withExamples(
    connection
      .command('create')
      .description('create a connection and show its token, once')
      .requiredOption('--app <name>', 'its app', nonEmpty)
      .option('--token <token>', 'its token; generated if absent', nonEmpty)
      .option('--label <text>', 'a name for people', shortText),
    'connection create --app my-app --label "Savings plan"',
  ).action(({ app, token, label }: { app: string; token?: string; label?: string }) =>
    run(async ({ db }) => {
      const json = await createConnection(db, { app, token, label })
      const text = `Connection ${json.id} of ${app}. Its token is shown only now:\n${json.token}`
      return { json, text }
    }),
  )
}

function addList(connection: Command, run: Run): void {
  withExamples(
    connection
      .command('list')
      .description('list the connections of an app, without secrets')
      .requiredOption('--app <name>', 'the app', nonEmpty),
    'connection list --app my-app',
  ).action(({ app }: { app: string }) =>
    run(async ({ db }) => {
      const items = await listConnections(db, app)
      const rows = items.map((item) => ({
        id: item.id,
        label: item.label,
        portfolio: item.portfolioTransactions,
        account: item.accountTransactions,
        changed: item.changedAt,
      }))
      return { json: { items }, text: table(rows, `The app ${app} has no connections.`) }
    }),
  )
}

function addDelete(connection: Command, run: Run): void {
  withExamples(
    connection
      .command('delete')
      .description('delete a connection and all its rows, immediately and permanently')
      .argument('[id]', 'id of the connection, from `connection list`', connectionId)
      .option('--connection <token>', 'its token, instead of the id', nonEmpty)
      .option('--app <name>', 'the app that it must belong to', nonEmpty),
    'connection delete 4611686018427387904 --app my-app',
    'connection delete --connection AbCdEfGh12IjKlMnOp34Qr',
  ).action(
    (id: string | undefined, { connection: token, app }: { connection?: string; app?: string }) => {
      const reference: ConnectionReference = { ...idOrToken(id, token), app }
      return run(async ({ db }) => {
        const json = await deleteConnection(db, await findConnection(db, reference))
        const text = `Connection ${json.id} of ${json.app} is deleted with ${describeRows(json)}.`
        return { json, text }
      })
    },
  )
}

function idOrToken(id: string | undefined, token: string | undefined) {
  if (id !== undefined && token === undefined) return { id }
  if (token !== undefined && id === undefined) return { token }
  throw new UsageError('Give the id of the connection, or its token with --connection.')
}

function connectionId(value: string): string {
  if (/^-?\d{1,19}$/.test(value) && BigInt.asIntN(64, BigInt(value)) === BigInt(value)) return value
  throw new InvalidArgumentError('It is a number: `connection list --app NAME` shows it.')
}
