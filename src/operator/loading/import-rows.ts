import { pipeline } from 'node:stream/promises'
import { sql } from 'kysely'
import type pg from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import { OperatorError } from '../../operator-error.ts'
import { bind } from '../../postgres/statements.ts'
import { withoutTimeouts } from '../database.ts'
import { ImportRejected, SHOWN_PROBLEMS } from '../errors.ts'
import { type CsvRow, readCsv } from './csv.ts'
import { adviceOnForm, parseJson } from './json.ts'
import {
  MergeRejected,
  mayRepeat,
  merge,
  type Query,
  type Replacement,
  runInOrder,
} from './merge.ts'
import { beginLoad, mergeStatements } from './merge-statements.ts'
import { Problems } from './problems.ts'
import { type Row, type RowParser, rowParser } from './row-parser.ts'
import { type ListName, type RowType, rowTypes } from './row-types.ts'
import { type FileFormat, type Line, readLines, type Source, untilAbort } from './source.ts'

export interface ImportOptions {
  type: ListName
  /** Id of the connection in the database, not its token. */
  connectionId: string
  sources: Source[]
  format?: FileFormat
  dryRun?: boolean
  replace?: Replacement | undefined
  signal?: AbortSignal
  progress?: { step: 'Reading' | 'Comparing' | 'Writing' | 'Committing'; rows: number }
}

/**
 * Imports all rows into a connection, or none. Updates existing rows (by their id) that differ.
 * @returns counts of rows; `leftOut`: the fields that no row had, and that are null in all rows
 * @throws ImportRejected for invalid rows, OperatorError if there is no such connection, or at an abort
 */
export async function importRows(pool: pg.Pool, options: ImportOptions) {
  const client = await pool.connect()
  // The statement in progress reports the error.
  client.on('error', () => {})
  try {
    const imported = await importInTransaction(client, options).catch((error: unknown) => {
      throw options.signal?.aborted
        ? new OperatorError('Interrupted; nothing was imported.')
        : error
    })
    if (options.progress) options.progress.step = 'Committing'
    if (!options.dryRun) await client.query('commit').catch(throwInDoubt)
    return imported
  } finally {
    // The end of the session rolls back what is not committed.
    client.release(true)
  }
}

function throwInDoubt(error: pg.DatabaseError) {
  if (error.severity === 'ERROR') throw error
  throw new OperatorError(
    'The connection to PostgreSQL broke during the commit: the rows may be imported or not. Import them ' +
      'again: rows that are imported already do not change.',
  )
}

async function importInTransaction(client: pg.ClientBase, options: ImportOptions) {
  const { connectionId, replace, progress = { step: 'Reading', rows: 0 }, signal } = options
  const type = rowTypes[options.type]
  const columns = type.columns.map(({ name }) => name).join(', ')
  const parser = rowParser(type, new Problems(), replace)
  const starts: Start[] = []
  // The columns have the domains of the table, so PostgreSQL validates every value again.
  await client.query(`${beginLoad(replace !== undefined)};
    ${withoutTimeouts('transaction')};
    create temporary table import_row on commit drop
    as select ${columns}, 0::bigint as line from ${type.table} with no data`)
  const rows = copyText(options, parser, starts, progress)
  await pipeline(rows, client.query(copyFrom(copySql('import_row', type))))
  signal?.throwIfAborted()
  await client.query(`analyze import_row (${type.key.column})`)
  progress.step = 'Comparing'
  await requireValid(client, type, parser.problems, starts)
  const run = runInOrder(client)
  const query: Query = (statement, values) =>
    run({ text: statement.text, values: bind(statement, { connectionId, ...values }) })
  const statements = mergeStatements(type, sql`import_row i`, 'file')
  // The input can be read only once, so a deadlock repeats the statements after it.
  await client.query('savepoint staged')
  for (let attempt = 1; ; attempt += 1)
    try {
      const { hasOddHour } = parser
      const list = { type, count: progress.rows, statements, values: {}, hasOddHour }
      const merged = await merge(query, [list], options)
      progress.step = 'Writing'
      await merged?.written
      signal?.throwIfAborted()
      const [counts] = merged?.counts ?? []
      if (counts === undefined) throw new OperatorError('The connection does not exist any more.')
      const leftOut = progress.rows > 0 ? parser.leftOut() : []
      return { counts: { read: progress.rows, ...counts }, leftOut }
    } catch (error) {
      if (error instanceof MergeRejected) throw ofLines(error, starts)
      if (!(await mayRepeat(error, attempt))) throw error
      await client.query('rollback to savepoint staged')
    }
}

/** A source, and the number of the lines before it. */
type Start = { file: string; before: number }

/** Omits rows with problems, and reads on to find others. Each row has its line number as its last column. */
async function* copyText(
  { sources, format, signal }: ImportOptions,
  parser: RowParser,
  starts: Start[],
  progress: { rows: number },
): AsyncGenerator<Buffer> {
  const { type, problems } = parser
  const copyLine = copyWriter(type)
  let last = 0
  for (const source of sources) {
    const before = last
    starts.push({ file: source.name, before })
    const batches: AsyncGenerator<Iterable<Line | CsvRow>> =
      format === 'csv' ? readCsv(source, type.fields) : readLines(source)
    for await (const batch of signal ? untilAbort(batches, signal) : batches) {
      const lines: string[] = []
      for (const item of batch) {
        last = before + item.line
        problems.place = { line: last }
        const value = 'row' in item ? item.row : parseLine(item, problems)
        const row = value === undefined ? undefined : parser.parse(value)
        if (row) lines.push(copyLine(row, last))
      }
      progress.rows += lines.length
      yield Buffer.from(lines.join(''))
    }
  }
}

/** A file in another format has an advice on its first line. */
function parseLine(line: Line, problems: Problems): unknown {
  if (line.line !== 1 || line.problem !== undefined) return parseJson(line, problems)
  const advice = adviceOnForm(line)
  if (advice !== undefined) return problems.add(advice)
  if (line.text.trimStart().startsWith('{')) return parseJson(line, problems)
  return problems.add('not JSON: if the file is CSV, add --format csv')
}

/** PostgreSQL finds duplicates: they may be gigabytes apart. @throws ImportRejected with the first problems by line */
async function requireValid(
  client: pg.ClientBase,
  { key: { column, field } }: RowType,
  problems: Problems,
  starts: Start[],
): Promise<void> {
  const { rows } = await client.query<{ line: string; first: string; total: string }>(`
    with repeated as (
      select ${column} as key, min(line) as first, sum(count(*) - 1) over () as total
      from import_row group by ${column} having count(*) > 1)
    select i.line, r.first, r.total
    from import_row i join repeated r on r.key = i.${column}
    where i.line > r.first
    order by i.line limit ${SHOWN_PROBLEMS}`)
  const total = problems.total + Number(rows[0]?.total ?? 0)
  if (total === 0) return
  const duplicates = rows.map((row) => {
    const { file, line } = locate(Number(row.first), starts)
    const detail = `duplicate of the row on line ${line} of ${file}`
    return { line: Number(row.line), field, detail }
  })
  const first = [...problems.shown, ...duplicates]
    .sort((a, b) => Number(a.line) - Number(b.line))
    .map((problem) => ({ ...problem, ...locate(Number(problem.line), starts) }))
  throw new ImportRejected(first, total)
}

/** Finds the file of a line, and the number of the line in it. */
function locate(line: number, starts: Start[]) {
  const { file = '', before = 0 } = starts.findLast(({ before }) => before < line) ?? {}
  return { file, line: line - before }
}

/** Names the lines of the rows that the merge has rejected. */
function ofLines(error: MergeRejected, starts: Start[]): OperatorError {
  const { problems, total } = error
  const located = problems.flatMap(({ row, field = '', detail }) =>
    row === undefined ? [] : [{ ...locate(row, starts), field, detail }],
  )
  return located.length > 0 ? new ImportRejected(located, total) : error
}

/** Returns a writer of rows as CSV with tabs, in which an empty field is null and an empty text has quotes. */
export function copyWriter({ columns }: RowType): (row: Row, line: number) => string {
  // Only texts may have characters with a meaning in CSV.
  const texts = [...columns.keys()].filter((index) => columns[index]?.sqlType === 'text')
  return (row, line) => {
    for (const index of texts) {
      const text = row[index]
      if (text === '' || (text && /["\t\n\r]/.test(text)))
        row[index] = `"${text.replaceAll('"', '""')}"`
    }
    // One join makes a flat text. Added parts stay a tree of thousands of objects until the text is written.
    return `${row.join('\t')}\t${line}\n`
  }
}

/** COPY of the rows of copyWriter(). */
export function copySql(table: string, { columns }: RowType): string {
  const names = columns.map(({ name }) => name).join(', ')
  return `copy ${table} (${names}, line) from stdin (format csv, delimiter '\t')`
}
