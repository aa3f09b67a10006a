import type { Command } from 'commander'
import { InvalidArgumentError } from 'commander'
import { isDay } from '../../schemas/formats.ts'
import type { Context } from '../command.ts'
import { findConnection } from '../connections.ts'
import { openInputs, shareOf } from '../inputs.ts'
import { type ImportOptions, importRows } from '../loading/import-rows.ts'
import type { ListName } from '../loading/row-types.ts'
import { pluralize, showProgress } from '../output.ts'

type Flags = Required<Pick<ImportOptions, 'format'>> &
  ImportOptions['replace'] & { connection: string; app?: string; dryRun?: true; replace?: true }

/** Imports files. The name of the command is the type of the rows. */
export async function run(context: Context, files: string[], flags: Flags, command: Command) {
  const { pool, signal } = context
  const { format, dryRun = false } = flags
  const type = command.name() as ListName
  const replace = replacementOf(flags)
  const sources = await openInputs(files)
  const { id: connectionId } = await findConnection(context, flags.connection, flags.app)
  const progress: ImportOptions['progress'] = { step: 'Reading', rows: 0 }
  using _progress = showProgress(() => {
    const share = progress.step === 'Reading' ? shareOf(sources) : Number.NaN
    return { step: progress.step, done: pluralize(progress.rows, 'row'), share }
  })
  const options = { type, connectionId, sources, format, signal, progress, dryRun, replace }
  const { counts, leftOut } = await importRows(pool, options)
  const { read, inserted, updated, unchanged, removed } = counts
  const [be, are] = dryRun ? [' would be', ' are'] : ['', '']
  const written = `${inserted}${be} inserted, ${updated}${be} updated, ${unchanged}${are} unchanged`
  const rest = replace ? `, ${removed}${be} removed` : ''
  const done = read === 0 && removed === 0 ? 'the input has none' : written + rest
  const missing = `\nMissing in every row, and stored as null: ${pluralize(leftOut.length, 'field')} (names: --json).`
  const text = `Read ${pluralize(read, 'row')}: ${done}.${leftOut.length > 0 ? missing : ''}`
  return { json: { ...counts, leftOut }, text }
}

/** @throws InvalidArgumentError for a range without --replace, and for a wrong or empty one */
function replacementOf({ replace, from, to, yes }: Flags): ImportOptions['replace'] {
  if (![from, to].every((day) => day === undefined || isDay(day)))
    throw new InvalidArgumentError('--from and --to must be existing days, as YYYY-MM-DD.')
  if (from !== undefined && to !== undefined && from > to)
    throw new InvalidArgumentError('--from must not be after --to.')
  if (replace) return { from, to, yes }
  if (from === undefined && to === undefined && !yes) return undefined
  throw new InvalidArgumentError('--from, --to and --yes need --replace.')
}
