import { pipeline } from 'node:stream/promises'
import type pg from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import { ImportRejected, SHOWN_PROBLEMS } from '../errors.ts'
import { csvAsJson } from './csv.ts'
import type { DateRange } from './merge.ts'
import { RowReader } from './row-reader.ts'
import type { RowType } from './row-types.ts'
import { type Format, plainText, readBlocks, type Source } from './source.ts'

interface Problem {
  line: number
  field?: string | undefined
  reason: string
}

interface StageOptions {
  format: Format
  range: DateRange
  onRows: (rows: number) => void
  signal: AbortSignal | undefined
}

/**
 * Reads all sources into the temporary table `import_row`, at the speed of PostgreSQL. The columns have
 * the domains of the real table, so PostgreSQL validates every value again. Omits and reports invalid
 * rows, and continues reading to find other problems.
 */
export async function stage(
  client: pg.ClientBase,
  type: RowType,
  sources: Source[],
  options: StageOptions,
): Promise<StagedInput> {
  const columns = type.columns.join(', ')
  await client.query(`
    create temporary table import_row on commit drop
    as select ${columns}, 0::bigint as line from ${type.table} with no data`)
  const input = new StagedInput(type)
  const copy = client.query(copyFrom(`copy import_row (${columns}, line) from stdin`))
  await pipeline(input.copyText(sources, options), copy)
  options.signal?.throwIfAborted()
  await client.query(`analyze import_row (${type.key.column})`)
  return input
}

/** Result of staging: `import_row` has the valid rows, each with its line number. */
export class StagedInput {
  rows = 0
  /** The first problems, at most SHOWN_PROBLEMS. */
  readonly problems: Problem[] = []
  problemCount = 0
  readonly #type: RowType
  readonly #reader: RowReader
  readonly #starts: { file: string; before: number }[] = []
  #line = 0

  constructor(type: RowType) {
    this.#type = type
    this.#reader = new RowReader(type, (reason, field) => this.#report(reason, field))
  }

  async *copyText(
    sources: Source[],
    { format, range, onRows, signal }: StageOptions,
  ): AsyncGenerator<Buffer> {
    const textOf = (source: Source) => {
      const chunks = plainText(source, format)
      return format === 'csv' ? csvAsJson({ ...source, chunks }, this.#type.fields) : chunks
    }
    for (const source of sources) {
      const before = this.#line
      this.#starts.push({ file: source.name, before })
      for await (const lines of readBlocks([source], { signal, textOf })) {
        for (const { place, bytes, problem } of lines) {
          this.#line = before + place.line
          if (problem) this.#report(problem)
          else if (this.#reader.read(bytes, this.#line, range)) this.rows += 1
        }
        onRows(this.rows)
        yield this.#reader.takeCopyText()
      }
    }
  }

  leftOut(): string[] {
    return this.rows > 0 ? this.#reader.leftOut() : []
  }

  /** Finds the source of a line, and its line number in that source. */
  locate(line: number): { file: string; line: number } {
    const start = this.#starts.findLast(({ before }) => before < line)
    return { file: start?.file ?? '', line: line - (start?.before ?? 0) }
  }

  #report(reason: string, field?: string): void {
    this.problemCount += 1
    if (this.problems.length < SHOWN_PROBLEMS)
      this.problems.push({ line: this.#line, field, reason })
  }
}

/** @throws ImportRejected with the first problems by line, if there are problems or duplicates */
export async function validate(client: pg.ClientBase, type: RowType, staged: StagedInput) {
  const duplicates = await findDuplicates(client, type, staged)
  const total = staged.problemCount + duplicates.total
  if (total === 0) return
  const first = [...staged.problems, ...duplicates.first]
    .sort((a, b) => a.line - b.line)
    .slice(0, SHOWN_PROBLEMS)
    .map(({ line, field, reason }) => ({ ...staged.locate(line), ...(field && { field }), reason }))
  throw new ImportRejected(first, total)
}

/** PostgreSQL finds duplicates, because they may be gigabytes apart. */
async function findDuplicates(client: pg.ClientBase, { key }: RowType, staged: StagedInput) {
  const { rows } = await client.query<{ line: string; first: string; total: string }>(`
    with repeated as (
      select ${key.column} as key, min(line) as first, sum(count(*) - 1) over () as total
      from import_row group by ${key.column} having count(*) > 1)
    select i.line, r.first, r.total
    from import_row i join repeated r on r.key = i.${key.column}
    where i.line > r.first
    order by i.line limit ${SHOWN_PROBLEMS}`)
  const first = rows.map((row): Problem => {
    const { file, line } = staged.locate(Number(row.first))
    const reason = `duplicate of the row on line ${line} of ${file}`
    return { line: Number(row.line), field: key.field, reason }
  })
  return { first, total: Number(rows[0]?.total ?? 0) }
}
