import type { Command } from 'commander'
import { createApp, listApps, setClientId } from '../apps.ts'
import { nonEmpty, type Run, shortText, withExamples } from '../command.ts'
import { deleteApp, rowsInWords } from '../deletion.ts'
import { UsageError } from '../errors.ts'
import { pluralize, table } from '../output.ts'

/** `app create`, `app list`, `app set-client-id`, `app delete`: the programs that call the service. */
export function addAppCommands(program: Command, run: Run): void {
  const app = program.command('app').description('the programs that call the service')
  addCreate(app, run)
  addList(app, run)
  addSetClientId(app, run)
  addDelete(app, run)
}

function addCreate(app: Command, run: Run): void {
  withExamples(
    app
      .command('create')
      .description('register an app')
      .argument('<name>', 'unique name of the app', shortText)
      .option('--client-id <id>', 'client id that an identity provider knows it by', shortText),
    'app create my-app',
  ).action((name: string, { clientId }: { clientId?: string }) =>
    run(async ({ db }) => {
      const created = await createApp(db, { name, clientId })
      return { json: created, text: `The app ${created.name} is registered (${created.id}).` }
    }),
  )
}

function addList(app: Command, run: Run): void {
  withExamples(app.command('list').description('show all apps'), 'app list').action(() =>
    run(async ({ db }) => {
      const items = await listApps(db)
      const rows = items.map(({ name, id, clientId, connections }) => ({
        name,
        id,
        'client id': clientId,
        connections,
      }))
      return { json: { items }, text: table(rows, 'There are no apps.') }
    }),
  )
}

function addSetClientId(app: Command, run: Run): void {
  withExamples(
    app
      .command('set-client-id')
      .description(
        'set the client id that an identity provider knows an app by, in place of its last',
      )
      .argument('<name>', 'name of the app', nonEmpty)
      .argument('[id]', 'client id', shortText)
      .option('--none', 'take its client id away: tokens of the provider are refused from then on'),
    'app set-client-id my-app 8f14e45f-client',
    'app set-client-id my-app --none',
  ).action((name: string, id: string | undefined, { none = false }: { none?: boolean }) => {
    if ((id === undefined) !== none) throw new UsageError('Give a client id, or --none.')
    return run(async ({ db }) => {
      const changed = await setClientId(db, { name, clientId: id ?? null })
      const text = id === undefined ? 'has no client id' : `has the client id ${id}`
      return { json: changed, text: `The app ${name} ${text} from now on.` }
    })
  })
}

function addDelete(app: Command, run: Run): void {
  withExamples(
    app
      .command('delete')
      .description('delete an app and its tokens: at once, and for good')
      .argument('<name>', 'name of the app', nonEmpty)
      .option('--with-connections', 'its connections and all their rows, too'),
    'app delete my-app',
    'app delete my-app --with-connections',
  ).action((name: string, { withConnections = false }: { withConnections?: boolean }) =>
    run(async ({ db }) => {
      const deleted = await deleteApp(db, { name, withConnections })
      const connections = pluralize(deleted.connections, 'connection')
      const text =
        `The app ${name} is deleted with ${pluralize(deleted.tokens, 'token')} and ${connections}` +
        (deleted.connections > 0 ? `: ${rowsInWords(deleted)}.` : '.')
      return { json: deleted, text }
    }),
  )
}
