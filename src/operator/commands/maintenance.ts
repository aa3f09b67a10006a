import type { Command } from 'commander'
import { seed } from '../../../seeds/seed.ts'
import { type Report, type Run, withExamples } from '../command.ts'
import { configureServiceRole, migrate } from '../migrate.ts'
import { pluralize, table } from '../output.ts'
import { type Difference, verifyBooks } from '../verify.ts'

/** `migrate`, `seed` and `verify`: what concerns the database as a whole. */
export function addMaintenanceCommands(
  program: Command,
  run: Run,
  servicePassword: string | undefined,
): void {
  withExamples(
    program
      .command('migrate')
      .description(
        'bring the schema up to date and set up the role that the service connects as; with ' +
          'SERVICE_DATABASE_PASSWORD in the environment, that role can log in',
      ),
    'migrate',
  ).action(() =>
    run(
      async ({ db }, notice) => {
        const applied = await migrate(db, notice)
        await configureServiceRole(db, servicePassword)
        const done = `Applied ${applied.join(', ')}.`
        return { json: { applied }, text: applied.length > 0 ? done : 'The schema is up to date.' }
      },
      { anySchema: true },
    ),
  )
  withExamples(
    program
      .command('seed')
      .description('add the sample data to the database; its tokens are public'),
    'seed',
  ).action(() =>
    run(async ({ pool }) => {
      await seed(pool)
      return { json: { seeded: true }, text: 'The sample data is in the database.' }
    }),
  )
  withExamples(
    program
      .command('verify')
      .description('count all rows anew, and tell where the books that totals come from are wrong'),
    'verify',
  ).action(() => run(async ({ db }) => reportOf(await verifyBooks(db))))
}

function reportOf(verification: Awaited<ReturnType<typeof verifyBooks>>): Report {
  const { connections, rows, differences } = verification
  const extent = `${pluralize(rows, 'row')} of ${pluralize(connections, 'connection')}`
  if (differences.length === 0) {
    return { json: verification, text: `The books agree with ${extent}.` }
  }
  const list = table(differences.map(rowOf), '')
  return { json: verification, text: `The books are wrong:\n${list}`, failed: true }
}

function rowOf({ connectionId, table, period, booked, counted }: Difference) {
  return { connection: connectionId, table, period: period ?? 'all', booked, counted }
}
