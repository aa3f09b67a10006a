import type { Command } from 'commander'
import { createApp, listApps, setClientId } from '../apps.ts'
import { nonEmpty, type Run, shortText, withExamples } from '../command.ts'
import { deleteApp, describeRows } from '../deletion.ts'
import { UsageError } from '../errors.ts'
import { pluralize, table } from '../output.ts'

/** `app create`, `app list`, `app set-client-id`, `app delete`. */
export function addAppCommands(program: Command, run: Run): void {
  const app = program.command('app').description('apps: programs that call the service')
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
      .option('--client-id <id>', 'its client id at the identity provider', shortText),
    'app create my-app',
  ).action((name: string, { clientId }: { clientId?: string }) =>
    run(async ({ db }) => {
      const json = await createApp(db, { name, clientId })
      return { json, text: `The app ${json.name} is registered (${json.id}).` }
    }),
  )
}

function addList(app: Command, run: Run): void {
  withExamples(app.command('list').description('list all apps'), 'app list').action(() =>
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
      .description('replace the client id of an app at the identity provider')
      .argument('<name>', 'name of the app', nonEmpty)
      .argument('[id]', 'client id', shortText)
      .option('--none', 'remove its client id: tokens of the provider are rejected from then on'),
    'app set-client-id my-app 8f14e45f-client',
    'app set-client-id my-app --none',
  ).action((name: string, id: string | undefined, { none = false }: { none?: boolean }) => {
    if ((id === undefined) !== none) throw new UsageError('Give a client id, or --none.')
    return run(async ({ db }) => {
      const json = await setClientId(db, { name, clientId: id ?? null })
      const clientId = id === undefined ? 'no client id' : `the client id ${id}`
      return { json, text: `The app ${name} has ${clientId} from now on.` }
    })
  })
}

function addDelete(app: Command, run: Run): void {
  withExamples(
    app
      .command('delete')
      .description('delete an app and its tokens, immediately and permanently')
      .argument('<name>', 'name of the app', nonEmpty)
      .option('--with-connections', 'delete its connections and all their rows, too'),
    'app delete my-app',
    'app delete my-app --with-connections',
  ).action((name: string, { withConnections = false }: { withConnections?: boolean }) =>
    run(async ({ db }) => {
      const json = await deleteApp(db, { name, withConnections })
      const tokens = pluralize(json.tokens, 'token')
      const connections = pluralize(json.connections, 'connection')
      const rows = json.connections > 0 ? `: ${describeRows(json)}` : ''
      return { json, text: `The app ${name} is deleted with ${tokens} and ${connections}${rows}.` }
    }),
  )
}
