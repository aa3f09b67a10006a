import type { Command } from 'commander'
import { nonEmpty, type Run, shortText, withExamples } from '../command.ts'
import { createConnection, listConnections } from '../connections.ts'
import { table } from '../table.ts'

/** `connection create` and `connection list`: what rows belong to, and what an app asks for. */
export function addConnectionCommands(program: Command, run: Run): void {
  const connection = program.command('connection').description('what the rows of an app belong to')
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
