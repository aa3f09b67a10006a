import { type Command, InvalidArgumentError, Option } from 'commander'
import { examples, nonEmpty, type Report, type Run } from '../command.ts'
import { findConnection } from '../connections.ts'
import { UsageError } from '../errors.ts'
import { type Imported, type ImportOptions, importRows } from '../loading/import-rows.ts'
import { type RowTypeName, rowTypes } from '../loading/row-types.ts'
import { isDay } from '../loading/rules.ts'
import { type Format, openInputs, shareOf } from '../loading/source.ts'
import { pluralize } from '../output.ts'

const LEFT_OUT = '\nA field that is left out is null, if it may be.'
const COMPLETED_AT = ` Exception: completedAt, the time when the user
completed the order, which the API does not show. Write a past time such as 2025-03-14T09:30:00Z,
or null for not yet; left out, it is the time of the import.`

interface ImportFlags {
  connection: string
  app?: string
  format: Format
  dryRun?: boolean
  replace?: true
  from?: string
  to?: string
  yes?: true
}

export function defineImport(group: Command, run: Run): void {
  for (const type of Object.keys(rowTypes) as RowTypeName[]) {
    const command = group
      .command(type)
      .description(
        `import ${rowTypes[type].noun}s into a connection, all of them or none. A row whose id ` +
          'the connection has already is updated if it differs.',
      )
      .argument('<file...>', 'files, also compressed by gzip; - is standard input')
      .addOption(
        new Option(
          '--format <format>',
          'one JSON object a line, or CSV with the fields as its header',
        )
          .choices(['ndjson', 'csv'])
          .default('ndjson'),
      )
      .requiredOption(
        '--connection <id>',
        'id of the connection; with --app, also your external id',
      )
      .option('--app <name>', 'the app that the connection must belong to', nonEmpty)
      .option('--dry-run', 'only validate the rows, and count what an import would change')
      .option('--replace', 'also remove the rows of the connection that the files do not have')
      .option('--yes', 'accept that --replace removes more than half of the rows')
      .addHelpText('after', type === 'transfer-orders' ? LEFT_OUT + COMPLETED_AT : LEFT_OUT)
      .addHelpText(
        'after',
        examples(
          `import ${type} --connection 4611686018427387904 rows.ndjson`,
          `import ${type} --connection customer-1 --app my-app --dry-run - < rows.ndjson`,
          `import ${type} --connection 4611686018427387904 --format csv rows.csv.gz`,
        ),
      )
      .action(async (files: string[], flags: ImportFlags) => {
        const { format, dryRun = false } = flags
        const replace = replacementOf(flags)
        await run(async (context) => {
          const { pool, signal, show } = context
          const sources = await openInputs(files)
          const { id } = await findConnection(context, flags.connection, flags.app)
          const progress: ImportOptions['progress'] = { step: 'Reading', rows: 0 }
          show(() => {
            const share = progress.step === 'Reading' ? shareOf(sources) : Number.NaN
            return { step: progress.step, done: pluralize(progress.rows, 'row'), share }
          })
          const input = { type, connectionId: id, sources, format, signal, progress }
          return reportOf(await importRows(pool, { ...input, dryRun, replace }), dryRun, !!replace)
        })
      })
    // Transfer orders have no effective date.
    if (type === 'transfer-orders') continue
    command
      .option(
        '--from <day>',
        'first effective date that --replace replaces, YYYY-MM-DD',
        existingDay,
      )
      .option('--to <day>', 'last effective date that --replace replaces, YYYY-MM-DD', existingDay)
  }
}

function existingDay(value: string): string {
  if (isDay(value)) return value
  throw new InvalidArgumentError('It must be an existing day, as YYYY-MM-DD.')
}

/** @throws UsageError for a range without --replace, and for an empty one */
function replacementOf({ replace, from, to, yes }: ImportFlags): ImportOptions['replace'] {
  if (from !== undefined && to !== undefined && from > to)
    throw new UsageError('--from must not be after --to.')
  if (replace) return { from, to, yes }
  if (from === undefined && to === undefined && !yes) return undefined
  throw new UsageError('--from, --to and --yes need --replace.')
}

function reportOf({ counts, leftOut }: Imported, dryRun: boolean, replaces: boolean): Report {
  const { read, inserted, updated, unchanged, removed } = counts
  const done = dryRun
    ? [`${inserted} would be inserted`, `${updated} would be updated`, `${unchanged} are unchanged`]
    : [`${inserted} inserted`, `${updated} updated`, `${unchanged} unchanged`]
  if (replaces) done.push(dryRun ? `${removed} would be removed` : `${removed} removed`)
  const isEmpty = read === 0 && removed === 0
  const rows = isEmpty ? 'the input has none' : done.join(', ')
  const text = [`Read ${pluralize(read, 'row')}: ${rows}.`]
  if (leftOut.length > 0)
    text.push(`No row has ${leftOut.length} of the fields: they are null. --json names them.`)
  return { json: { ...counts, leftOut }, text: text.join('\n') }
}
