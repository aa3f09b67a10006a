import { type Command, InvalidArgumentError, Option } from 'commander'
import { examples, nonEmpty, type Report, type Run } from '../command.ts'
import { findConnection } from '../connections.ts'
import { UsageError } from '../errors.ts'
import { type Imported, type ImportOptions, importRows } from '../loading/import-rows.ts'
import type { Replacement } from '../loading/merge.ts'
import { type RowTypeName, rowTypes } from '../loading/row-types.ts'
import { isDay } from '../loading/rules.ts'
import { type Format, type Input, openInputs, type Source } from '../loading/source.ts'
import { pluralize } from '../output.ts'

export function addCommands(program: Command, run: Run): void {
  const group = program.command('import')
  for (const name of Object.keys(rowTypes) as RowTypeName[]) addImport(group, name, run)
}

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

function addImport(group: Command, name: RowTypeName, run: Run): void {
  const command = group
    .command(name)
    .description(
      `import ${rowTypes[name].noun}s into a connection, all of them or none. A row whose id ` +
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
    .requiredOption('--connection <id>', 'id of the connection; with --app, also your external id')
    .option('--app <name>', 'the app that the connection must belong to', nonEmpty)
    .option('--dry-run', 'only validate the rows, and count what an import would change')
    .option('--replace', 'also remove the rows of the connection that the files do not have')
    .option('--yes', 'accept that --replace removes more than half of the rows')
    .addHelpText('after', name === 'transfer-orders' ? LEFT_OUT + COMPLETED_AT : LEFT_OUT)
    .addHelpText(
      'after',
      examples(
        `import ${name} --connection 4611686018427387904 rows.ndjson`,
        `import ${name} --connection customer-1 --app my-app --dry-run - < rows.ndjson`,
        `import ${name} --connection 4611686018427387904 --format csv rows.csv.gz`,
      ),
    )
    .action(async (files: string[], { connection, app, dryRun = false, ...flags }: ImportFlags) => {
      const replace = replacementOf(flags)
      await run(async (database) => {
        const { pool, signal } = database
        const inputs = await openInputs(files)
        const connectionId = await findConnection(database, connection, app)
        const { sources, onProgress, stop } = showProgress(inputs)
        const input = { type: name, connectionId, sources, format: flags.format }
        const options = { ...input, dryRun, replace, onProgress, signal }
        return reportOf(await importRows(pool, options).finally(stop), options)
      })
    })
  // Transfer orders have no effective date.
  if (name === 'transfer-orders') return
  command
    .option('--from <day>', 'first effective date that --replace replaces, YYYY-MM-DD', existingDay)
    .option('--to <day>', 'last effective date that --replace replaces, YYYY-MM-DD', existingDay)
}

function existingDay(value: string): string {
  if (isDay(value)) return value
  throw new InvalidArgumentError('It must be an existing day, as YYYY-MM-DD.')
}

/** @throws UsageError for a range without --replace, and for an empty one */
function replacementOf({
  replace,
  from,
  to,
  yes,
}: Pick<ImportFlags, 'replace' | 'from' | 'to' | 'yes'>): Replacement | undefined {
  if (from !== undefined && to !== undefined && from > to)
    throw new UsageError('--from must not be after --to.')
  if (replace) return { from, to, yes }
  if (from === undefined && to === undefined && !yes) return undefined
  throw new UsageError('--from, --to and --yes need --replace.')
}

function reportOf(
  { counts, leftOut }: Imported,
  { dryRun, replace }: Pick<ImportOptions, 'dryRun' | 'replace'>,
): Report {
  const { read, inserted, updated, unchanged, removed } = counts
  const done = dryRun
    ? [`${inserted} would be inserted`, `${updated} would be updated`, `${unchanged} are unchanged`]
    : [`${inserted} inserted`, `${updated} updated`, `${unchanged} unchanged`]
  if (replace) done.push(dryRun ? `${removed} would be removed` : `${removed} removed`)
  const isEmpty = read === 0 && removed === 0
  const rows = isEmpty ? 'the input has none' : done.join(', ')
  const text = [`Read ${pluralize(read, 'row')}: ${rows}.`]
  if (leftOut.length > 0)
    text.push(`No row has ${leftOut.length} of the fields: they are null. --json names them.`)
  return { json: { ...counts, leftOut }, text: text.join('\n') }
}

/**
 * Shows progress in the last line of standard error, if that is a terminal. The caller must read the
 * returned sources. It does not change the state of the terminal: an interrupted process could not restore it.
 */
function showProgress(inputs: Input[]) {
  const { stderr } = process
  if (!stderr.isTTY) return { sources: inputs, onProgress: () => {}, stop: () => {} }
  // A pipe has no known size.
  const total = inputs.reduce((sum, { bytes }) => sum + (bytes ?? Number.NaN), 0)
  const start = Date.now()
  let bytes = 0
  let progress = { step: 'Reading', rows: 0 }
  const draw = () => {
    const share = progress.step === 'Reading' ? Math.min(bytes / total, 1) : Number.NaN
    const bar = `${'='.repeat(share * 40).padEnd(40, '-')} ${Math.floor(share * 100)} %, `
    const seconds = Math.floor((Date.now() - start) / 1_000)
    const line = `${progress.step} ${share >= 0 ? bar : ''}${pluralize(progress.rows, 'row')}, ${seconds} s`
    stderr.write(`\r${line.slice(0, (stderr.columns || 80) - 1)}\x1b[K`)
  }
  async function* counting(chunks: Source['chunks']) {
    for await (const chunk of chunks) {
      bytes += chunk.length
      yield chunk
    }
  }
  const timer = setInterval(draw, 200)
  return {
    sources: inputs.map(({ name, chunks }): Source => ({ name, chunks: counting(chunks) })),
    onProgress: (now: typeof progress) => {
      progress = now
    },
    stop: () => {
      clearInterval(timer)
      stderr.write('\r\x1b[K')
    },
  }
}
