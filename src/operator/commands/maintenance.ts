import type { Command } from 'commander'
import type { Kysely } from 'kysely'
import { DEMO } from '../../../seeds/sample-data.ts'
import { seed } from '../../../seeds/seed.ts'
import { OperatorError } from '../../operator-error.ts'
import type { Tables } from '../../postgres/tables.ts'
import { examples, type Report, type Run } from '../command.ts'
import { configureServiceRole, migrate } from '../migrate.ts'
import { pluralize, table } from '../output.ts'
import { type Verification, verifyRowCounts } from '../verify.ts'

/** `migrate`, `seed` and `verify`. */
export function addMaintenanceCommands(
  program: Command,
  run: Run,
  password: string | undefined,
): void {
  program
    .command('migrate')
    .description(
      'update the schema and configure the role of the service. With SERVICE_DATABASE_PASSWORD ' +
        'in the environment, the role can log in.',
    )
    .addHelpText('after', examples('migrate'))
    .action(() =>
      run(
        async ({ db }, notice, { DATABASE_GENERIC_PLANS: genericPlans }) => {
          const applied = await migrate(db, notice)
          await configureServiceRole(db, { password, genericPlans }, notice)
          const done = `Applied ${applied.join(', ')}.`
          return {
            json: { applied },
            text: applied.length > 0 ? done : 'The schema is up to date.',
          }
        },
        { anySchema: true },
      ),
    )
  program
    .command('seed')
    .description('add the sample data, with its public tokens, to a database without other apps')
    .addHelpText('after', examples('seed'))
    .action(() =>
      run(async ({ db, pool }) => {
        await requireDemonstration(db)
        await seed(pool)
        return { json: { seeded: true }, text: 'The sample data is in the database.' }
      }),
    )
  program
    .command('verify')
    .description('count all rows, and report wrong row counts: the API takes totals from them')
    .addHelpText('after', examples('verify'))
    .action(() => run(async ({ db }) => reportOf(await verifyRowCounts(db))))
}

/** @throws OperatorError if the database has apps, but not those of the sample data */
async function requireDemonstration(db: Kysely<Tables>): Promise<void> {
  const apps = await db.selectFrom('app').select('name').orderBy('id').execute()
  const [first] = apps
  if (first === undefined || apps.some(({ name }) => name === DEMO.wealth.app)) return
  throw new OperatorError(
    `The database has the app ${first.name}. The sample data has public tokens, so it is ` +
      'only for a database without other apps.',
  )
}

function reportOf(json: Verification): Report {
  const extent = `${pluralize(json.rows, 'row')} of ${pluralize(json.connections, 'connection')}`
  if (json.differences.length === 0) return { json, text: `The row counts agree with ${extent}.` }
  const headings = ['connection', 'table', 'period', 'booked', 'counted']
  const rows = json.differences.map((difference) => {
    const { connectionId, period, booked, counted } = difference
    return [connectionId, difference.table, period ?? 'all', booked, counted]
  })
  return { json, text: `The row counts are wrong:\n${table(headings, rows)}`, failed: true }
}
