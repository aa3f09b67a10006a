import { InvalidArgumentError } from 'commander'
import { DEMO } from '../../../seeds/sample-data.ts'
import { advance, seed } from '../../../seeds/seed.ts'
import { OperatorError } from '../../operator-error.ts'
import { publicRights } from '../catalog.ts'
import type { Context } from '../command.ts'
import { pruneCursors } from '../deletion.ts'
import { migrate } from '../migrate.ts'
import { pluralize } from '../output.ts'
import { table } from '../table.ts'
import { repairRowCounts, verifyRowCounts } from '../verify.ts'

export async function migrateSchema({ db, environment, notice }: Context) {
  const password = environment.SERVICE_DATABASE_PASSWORD || undefined
  const applied = await migrate(db, password, notice)
  const done = `Applied ${applied.join(', ')}.`
  return { json: { applied }, text: applied.length > 0 ? done : 'The schema is up to date.' }
}

/** Adds the sample data to a database without apps, or only with its own. */
export async function seedDatabase({ db, pool }: Context) {
  const apps = await db.selectFrom('app').select('name').orderBy('id').execute()
  const [first] = apps
  if (first !== undefined && !apps.some(({ name }) => name === DEMO.wealth.app))
    throw new OperatorError(
      `The database has the app ${first.name}. The sample data has public tokens, so it is ` +
        'only for a database without other apps.',
    )
  await seed(pool)
  return { json: { seeded: true }, text: 'The sample data is in the database.' }
}

export async function advanceDemo({ pool }: Context, { days }: { days: number }) {
  const { day, ...counts } = await advance(pool, days)
  const { added, corrected, cancelled } = counts
  const changes = `${added} rows added, ${corrected} corrected, ${cancelled} cancelled`
  const text = `The sample data is that of ${day}: ${changes}.`
  return { json: { days, day, ...counts }, text }
}

export async function prune({ db }: Context, { days, yes }: { days: number; yes?: true }) {
  if (days < 400 && !yes)
    throw new InvalidArgumentError(
      'The API guarantees cursors for 400 days. --yes accepts fewer days.',
    )
  const json = await pruneCursors(db, days)
  const removals = pluralize(json.removals, 'removal')
  const versions = pluralize(json.versions, 'version')
  const horizons = `older cursors of ${pluralize(json.connections, 'connection')} expired`
  return { json, text: `${removals} and ${versions} deleted; ${horizons}.` }
}

export async function verify(
  { db, notice }: Context,
  { repair, hardened }: { repair?: true; hardened?: true },
) {
  let json = await verifyRowCounts(db)
  const wrong = new Set(json.differences.map(({ connectionId }) => connectionId))
  if (repair && wrong.size > 0) {
    for (const id of wrong) await repairRowCounts(db, id)
    notice(`The rows of ${pluralize(wrong.size, 'connection')} were counted again.`)
    json = await verifyRowCounts(db)
  }
  const { missing, unexpected } = json.schema
  const rights = hardened ? await publicRights(db) : []
  const drift = [
    ...missing.map(listed('missing, or changed')),
    ...unexpected.map(listed('of no migration')),
  ]
  const differences = json.differences.map((d) => ({ ...d, period: d.period ?? 'all' }))
  const text = [
    differences.length > 0 && `The row counts are wrong:\n${table(differences)}`,
    json.numbers.length > 0 && `Change numbers are wrong:\n${table(json.numbers)}`,
    rights.length > 0 &&
      `PUBLIC has rights that docs/reference/public-rights.sql revokes:\n${rights.map(listed('missing')).join('\n')}`,
    drift.length > 0 && `The schema differs from docs/reference/schema.sql:\n${drift.join('\n')}`,
    json.collation.length > 0 &&
      'The operating system sorts texts in another way than when the indexes were created. Run, as the owner of the ' +
        `database:\n${json.collation.map((statement) => `  ${statement};`).join('\n')}`,
  ].filter((part) => part !== false)
  const found = hardened ? { ...json, publicRights: rights } : json
  if (text.length > 0) return { json: found, text: text.join('\n'), failed: true }
  const extent = `${pluralize(json.rows, 'row')} of ${pluralize(json.connections, 'connection')}`
  return { json: found, text: `The row counts and change numbers agree with ${extent}.` }
}

/** Lists the begins of statements: the whole ones are in docs/reference/schema.sql, and with --json. */
const listed = (problem: string) => (statement: string) =>
  `  ${problem}: ${statement.replaceAll(/\s+/g, ' ').trim().slice(0, 200)}`
