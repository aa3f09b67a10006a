import { type Command, InvalidArgumentError } from 'commander'
import { nonEmpty, type Run, shortText, withExamples } from '../command.ts'
import {
  createConnection,
  findConnection,
  findConnectionById,
  listConnections,
} from '../connections.ts'
import { deleteConnection, rowsInWords } from '../deletion.ts'
import { UsageMistake } from '../errors.ts'
import { table } from '../output.ts'

/** `connection create`, `… list`, `… delete`: what rows belong to, and what an app asks for. */
export function addConnectionCommands(program: Command, run: Run): void {
  const connection = program.command('connection').description('what the rows of an app belong to')
  addCreate(connection, run)
  addList(connection, run)
  addDelete(connection, run)
}

function addCreate(connection: Command, run: Run): void {
  withExamples(
    connection
      .command('create')
      .description('create a connection; its token is shown this once')
      .requiredOption('--app <name>', 'the app that it belongs to', nonEmpty)
      .option('--token <token>', 'its token; a new one is made, if absent', nonEmpty)
      .option('--label <text>', 'what people know it by', shortText),
    'connection create --app my-app --label "Savings plan"',
  ).action(({ app, token, label }: { app: string; token?: string; label?: string }) =>
    run(async ({ db }) => {
      const created = await createConnection(db, { app, token, label })
      const text = `Connection ${created.id} of ${app}. Its token is shown only now:\n${created.token}`
      return { json: created, text }
    }),
  )
}

function addList(connection: Command, run: Run): void {
  withExamples(
    connection
      .command('list')
      .description('show the connections of an app, without what is secret')
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

interface DeleteFlags {
  connection?: string
  app?: string
}

function addDelete(connection: Command, run: Run): void {
  withExamples(
    connection
      .command('delete')
      .description('delete a connection and all its rows: at once, and for good')
      .argument('[id]', 'id of the connection, as `connection list` shows it', connectionId)
      .option('--connection <token>', 'its token, in place of its id', nonEmpty)
      .option('--app <name>', 'the app that it must belong to', nonEmpty),
    'connection delete 4611686018427387904 --app my-app',
    'connection delete --connection AbCdEfGh12IjKlMnOp34Qr',
  ).action((id: string | undefined, { connection: token, app }: DeleteFlags) => {
    const called = idOrToken(id, token)
    return run(async ({ db }) => {
      const found =
        'id' in called
          ? await findConnectionById(db, { ...called, app })
          : await findConnection(db, { ...called, app })
      const deleted = await deleteConnection(db, found)
      const text = `Connection ${found} of ${deleted.app} is deleted with ${rowsInWords(deleted)}.`
      return { json: deleted, text }
    })
  })
}

function idOrToken(
  id: string | undefined,
  token: string | undefined,
): { id: string } | { token: string } {
  if (id !== undefined && token === undefined) return { id }
  if (token !== undefined && id === undefined) return { token }
  throw new UsageMistake('Give the id of the connection, or its token with --connection.')
}

function connectionId(value: string): string {
  if (/^-?\d{1,19}$/.test(value) && BigInt.asIntN(64, BigInt(value)) === BigInt(value)) return value
  throw new InvalidArgumentError('It is a number: `connection list --app NAME` shows it.')
}
