import type { Command } from 'commander'
import { createApp, listApps } from '../apps.ts'
import { type Run, shortText, withExamples } from '../command.ts'
import { table } from '../table.ts'

/** `app create` and `app list`: the programs that call the service. */
export function addAppCommands(program: Command, run: Run): void {
  const app = program.command('app').description('the programs that call the service')
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
