import { type Command, InvalidArgumentError } from 'commander'
import type { Kysely } from 'kysely'
import { DEMO } from '../../../seeds/sample-data.ts'
import { seed } from '../../../seeds/seed.ts'
import { OperatorError } from '../../operator-error.ts'
import type { Tables } from '../../postgres/tables.ts'
import { examples, type Report, type Run } from '../command.ts'
import { expireCursors, GUARANTEED_DAYS, pruneRemovals } from '../cursors.ts'
import { UsageError } from '../errors.ts'
import { configureServiceRole, migrate } from '../migrate.ts'
import { pluralize, table } from '../output.ts'
import { type Verification, verifyRowCounts } from '../verify.ts'

/** `migrate`, `seed`, `verify`, `prune` and `expire-cursors`. */
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
  addPrune(program, run)
  program
    .command('expire-cursors')
    .description(
      'make all cursors of changes return 410. Necessary after a restore, a recovery to a point in ' +
        'time, or a failover that lost commits',
    )
    .addHelpText('after', examples('expire-cursors'))
    .action(() =>
      run(async ({ db }) => {
        const connections = await expireCursors(db)
        const text = `All cursors of ${pluralize(connections, 'connection')} have expired.`
        return { json: { connections }, text }
      }),
    )
}

function addPrune(program: Command, run: Run): void {
  program
    .command('prune')
    .description('delete the ids of rows removed long ago; cursors from before return 410')
    .option('--days <n>', 'keep the ids of the last n days', wholeDays, GUARANTEED_DAYS)
    .option('--yes', `accept less than the ${GUARANTEED_DAYS} days that the API guarantees`)
    .addHelpText('after', examples('prune', 'prune --days 800'))
    .action(async ({ days, yes }: { days: number; yes?: true }) => {
      if (days < GUARANTEED_DAYS && !yes) {
        throw new UsageError(
          `The API guarantees cursors for ${GUARANTEED_DAYS} days. --yes accepts fewer days.`,
        )
      }
      await run(async ({ db }) => {
        const json = await pruneRemovals(db, days)
        const removals = `${pluralize(json.removals, 'removal')} deleted`
        const horizons = `older cursors of ${pluralize(json.connections, 'connection')} expired`
        return { json, text: `${removals}; ${horizons}.` }
      })
    })
}

/** Parses a number of days, at most a thousand years. */
function wholeDays(value: string): number {
  if (/^\d{1,6}$/.test(value)) return Number(value)
  throw new InvalidArgumentError('It must be a whole number.')
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
