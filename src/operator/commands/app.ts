import type { Command } from 'commander'
import { sql } from 'kysely'
import { OperatorError } from '../../operator-error.ts'
import { examples, nonEmpty, type Run, shortText } from '../command.ts'
import { findApp } from '../database.ts'
import { deleteApp, describeRows } from '../deletion.ts'
import { isViolation, UsageError } from '../errors.ts'
import { pluralize } from '../output.ts'
import { table } from '../table.ts'

export function defineApp(app: Command, run: Run): void {
  app
    .command('create')
    .description('register an app')
    .argument('<name>', 'unique name of the app', shortText)
    .option('--client-id <id>', 'its client id at the identity provider', shortText)
    .addHelpText('after', examples('app create my-app'))
    .action((name: string, { clientId = null }: { clientId?: string | null }) =>
      run(async ({ db }) => {
        const json = await db
          .insertInto('app')
          .values({ name, client_id: clientId })
          .returning(['id', 'name'])
          .executeTakeFirstOrThrow()
          .catch((error: unknown) => explainTaken(error, name, clientId))
        return { json, text: `The app ${json.name} is registered (${json.id}).` }
      }),
    )
  app
    .command('list')
    .description('list all apps')
    .addHelpText('after', examples('app list'))
    .action(() =>
      run(async ({ db }) => {
        // Citus supports no correlated subquery here.
        const counts = db
          .selectFrom('connection')
          .select(['app_id', sql<number>`count(*)::integer`.as('count')])
          .groupBy('app_id')
          .as('c')
        const items = await db
          .selectFrom('app')
          .leftJoin(counts, 'c.app_id', 'app.id')
          .select(['id', 'name', 'client_id as clientId', 'created_at as createdAt'])
          .select(sql<number>`coalesce(c.count, 0)`.as('connections'))
          .orderBy('name')
          .execute()
        const headings = ['name', 'id', 'client id', 'connections']
        const rows = items.map((app) => [app.name, app.id, app.clientId, app.connections])
        return { json: { items }, text: table(headings, rows, 'There are no apps.') }
      }),
    )
  app
    .command('set-client-id')
    .description('replace the client id of an app at the identity provider')
    .argument('<name>', 'name of the app', nonEmpty)
    .argument('[id]', 'client id', shortText)
    .option('--none', 'remove its client id: tokens of the provider are rejected from then on')
    .addHelpText(
      'after',
      examples('app set-client-id my-app 8f14e45f-client', 'app set-client-id my-app --none'),
    )
    .action(
      (name: string, clientId: string | null = null, { none = false }: { none?: boolean }) => {
        if ((clientId === null) !== none) throw new UsageError('Give a client id, or --none.')
        return run(async ({ db }) => {
          const { id } = await findApp(db, name)
          const update = db.updateTable('app').set({ client_id: clientId }).where('id', '=', id)
          await update.execute().catch((error: unknown) => explainTaken(error, name, clientId))
          const text = none ? 'no client id' : `the client id ${clientId}`
          return { json: { id, name, clientId }, text: `The app ${name} has ${text} from now on.` }
        })
      },
    )
  app
    .command('delete')
    .description('delete an app and its tokens, immediately and permanently')
    .argument('<name>', 'name of the app', nonEmpty)
    .option('--with-connections', 'delete its connections and all their rows, too')
    .addHelpText('after', examples('app delete my-app', 'app delete my-app --with-connections'))
    .action((name: string, { withConnections = false }: { withConnections?: boolean }) =>
      run(async ({ db, show }) => {
        const json = await deleteApp(db, { name, withConnections }, show)
        const rows = json.connections > 0 ? `: ${describeRows(json)}` : ''
        const [tokens, connections] = [json.tokens, json.connections]
        const parts = `${pluralize(tokens, 'token')} and ${pluralize(connections, 'connection')}`
        return { json, text: `The app ${name} is deleted with ${parts}${rows}.` }
      }),
    )
}

function explainTaken(error: unknown, name: string, clientId: string | null): never {
  if (isViolation(error, 'app_name_key')) throw new OperatorError(`The app ${name} already exists.`)
  if (isViolation(error, 'app_client_id_key'))
    throw new OperatorError(`Another app already has the client id ${clientId}.`)
  throw error
}
