import type { Command } from 'commander'
import { nonEmpty, type Report, type Run, withExamples } from '../command.ts'
import { findConnection } from '../connections.ts'
import { type Imported, importRows } from '../import/import-rows.ts'
import { type KindName, kinds } from '../import/import-types.ts'
import { showProgress } from '../import/progress.ts'
import { openInputs } from '../import/source.ts'
import { pluralize } from '../output.ts'

interface ImportFlags {
  connection: string
  app?: string
  dryRun?: boolean
}

/** `import …`: rows from newline-delimited JSON, of each of the three kinds. */
export function addImportCommands(program: Command, run: Run): void {
  const group = program
    .command('import')
    .description('import rows: newline-delimited JSON with the field names of the API')
  for (const name of Object.keys(kinds) as KindName[]) addImport(group, name, run)
}

const NULL_WHERE_IT_MAY = 'A field that is left out is null, where it may be.'

/** What a field that is left out means. */
const LEFT_OUT: Record<KindName, string> = {
  'portfolio-transactions': NULL_WHERE_IT_MAY,
  'account-transactions': NULL_WHERE_IT_MAY,
  'transfer-orders': `${NULL_WHERE_IT_MAY} But completedAt, which
the API does not show, tells when the user completed the order: a time such as
2025-03-14T09:30:00Z, null for not yet; left out, it was completed by now.`,
}

function addImport(group: Command, name: KindName, run: Run): void {
  withExamples(
    group
      .command(name)
      .description(
        `import ${kinds[name].noun}s into a connection, all of them or none. A row whose id the ` +
          'connection has already is updated where it differs.',
      )
      .argument('<file...>', 'files with one JSON object a line; - is standard input')
      .requiredOption('--connection <token>', 'token of the connection', nonEmpty)
      .option('--app <name>', 'the app that the connection must belong to', nonEmpty)
      .option('--dry-run', 'only check the rows, and tell what an import would do')
      .addHelpText('after', `\n${LEFT_OUT[name]}`),
    `import ${name} --connection AbCdEfGh12IjKlMnOp34Qr rows.ndjson`,
    `import ${name} --connection AbCdEfGh12IjKlMnOp34Qr --dry-run - < rows.ndjson`,
  ).action((files: string[], flags: ImportFlags) =>
    run(async ({ db, pool }) => {
      const inputs = await openInputs(files)
      const connectionId = await findConnection(db, { token: flags.connection, app: flags.app })
      const dryRun = flags.dryRun === true
      const progress = showProgress(inputs)
      const imported = await importRows(pool, {
        kind: name,
        connectionId,
        sources: progress.sources,
        dryRun,
        onProgress: progress.update,
      }).finally(progress.stop)
      return reportOf(imported, dryRun)
    }),
  )
}

function reportOf({ counts, leftOut }: Imported, dryRun: boolean): Report {
  const { read, inserted, updated, unchanged } = counts
  const rows = `Read ${pluralize(read, 'row')}`
  const done = dryRun
    ? `${rows}: ${inserted} would be inserted, ${updated} updated, ${unchanged} are unchanged.`
    : `${rows}: ${inserted} inserted, ${updated} updated, ${unchanged} unchanged.`
  const text = [read === 0 ? 'Read 0 rows: there are none in the input.' : done]
  if (leftOut.length > 0) text.push(`No row has: ${leftOut.join(', ')}. What is left out is null.`)
  return { json: { ...counts, leftOut }, text: text.join('\n') }
}
