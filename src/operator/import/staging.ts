import { pipeline } from 'node:stream/promises'
import type pg from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import { SHOWN_FAULTS } from '../errors.ts'
import type { Kind } from './import-types.ts'
import { RowReader } from './row-reader.ts'
import { type Line, linesOf, type Source, textOnly, wholeLines } from './source.ts'

/** A fault by the number of its line, counted through all files of the import. */
export interface FaultAtLine {
  line: number
  field?: string | undefined
  reason: string
}

/** Keeps the first faults and counts the others. */
export class FaultList {
  readonly first: FaultAtLine[] = []
  total = 0

  add(fault: FaultAtLine): void {
    this.total += 1
    if (this.first.length < SHOWN_FAULTS) this.first.push(fault)
  }
}

/** What came in: `import_row` holds the rows without faults, each with the number of its line. */
export interface Staged {
  rows: number
  faults: FaultList
  /** Fields that no row had, which therefore became null in all of them. */
  leftOut(): string[]
  /** In which source a line is that was counted through all of them, and where there. */
  locate(line: number): { file: string; line: number }
}

/**
 * Reads all sources into the temporary table `import_row`, as fast as PostgreSQL takes them and no
 * faster. Its columns have the domains of the real table, so that the database checks every value
 * once more. Rows at fault are left out and told; reading goes on, to find the other faults.
 */
export async function stage(
  client: pg.ClientBase,
  kind: Kind,
  sources: Source[],
  onRows: (rows: number) => void,
): Promise<Staged> {
  const columns = kind.columns.join(', ')
  await client.query(`
    create temporary table import_row on commit drop
    as select ${columns}, 0::bigint as line from ${kind.table} with no data`)
  const reading = new Reading(kind, sources, onRows)
  const copy = client.query(copyFrom(`copy import_row (${columns}, line) from stdin`))
  await pipeline(reading.copyText(), copy)
  return reading
}

class Reading implements Staged {
  rows = 0
  readonly faults = new FaultList()
  readonly #sources: Source[]
  readonly #onRows: (rows: number) => void
  readonly #reader: RowReader
  readonly #starts: { file: string; before: number }[] = []
  #line = 0

  constructor(kind: Kind, sources: Source[], onRows: (rows: number) => void) {
    this.#sources = sources
    this.#onRows = onRows
    this.#reader = new RowReader(kind, (reason, field) => this.#fault(reason, field))
  }

  async *copyText(): AsyncGenerator<Buffer> {
    for (const source of this.#sources) {
      this.#starts.push({ file: source.name, before: this.#line })
      for await (const block of wholeLines(textOnly(source))) {
        for (const line of linesOf(block)) this.#read(block, line)
        this.#onRows(this.rows)
        yield this.#reader.takeCopyText()
      }
    }
  }

  leftOut(): string[] {
    return this.rows > 0 ? this.#reader.leftOut() : []
  }

  locate(line: number): { file: string; line: number } {
    const start = this.#starts.findLast(({ before }) => before < line)
    return { file: start?.file ?? '', line: line - (start?.before ?? 0) }
  }

  #read(block: Buffer, { start, fault }: Line): void {
    this.#line += 1
    if (fault) this.#fault(fault)
    else if (this.#reader.read(block, start, this.#line)) this.rows += 1
  }

  #fault(reason: string, field?: string): void {
    this.faults.add({ line: this.#line, field, reason })
  }
}
