import type pg from 'pg'
import { DatabaseUnavailable } from '../errors.ts'
import type { Holding } from '../response-memory.ts'
import type { Parameter, Statement } from '../statements.ts'
import { RawRows } from './raw-rows.ts'
import type { TappedConnection } from './row-filter.ts'

/** One run of a statement that somebody waits for. */
export interface Read {
  values: Parameter[]
  /** Where the memory of its rows is counted. */
  holding: Holding | undefined
  resolve(rows: RawRows): void
  reject(error: Error): void
}

/**
 * Runs a statement once for each read on a tapped client. Parse (the first time), then Bind and Execute
 * for each, and one Sync leave in one packet; the description of the columns is not asked for, as we
 * know them. Each read is taken out of `reads` and resolved as soon as its rows are all there, never with
 * a part of them.
 * @returns pg's DatabaseError, or the error of a connection that broke: it came up at the first of the
 *   reads that are left, and the server ran none of those behind it
 */
export function runBatch(
  client: pg.ClientBase,
  statement: Statement,
  reads: Read[],
): Promise<Error | undefined> {
  return new Promise((resolve) => {
    client.query(new BatchQuery(statement, reads, resolve))
  })
}

/** The part of pg's connection that a query speaks through. */
interface Wire extends TappedConnection {
  parsedStatements: Record<string, string>
  parse(message: { name: string; text: string }): void
  bind(message: { statement: string; values: Parameter[] }): void
  execute(message: object): void
  sync(): void
  sendCopyFail(reason: string): void
}

/** A query in the shape that pg's client drives (its Submittable, as pg-cursor is one). */
class BatchQuery implements pg.Submittable {
  readonly name: string
  readonly text: string
  readonly #reads: Read[]
  readonly #end: (error?: Error) => void
  #wire: Wire | undefined
  #rows = new RawRows()

  constructor({ name, text }: Statement, reads: Read[], end: (error?: Error) => void) {
    this.name = name
    this.text = text
    this.#reads = reads
    this.#end = end
  }

  submit(connection: pg.Connection): void {
    const wire = connection as Wire
    this.#wire = wire
    this.#next()
    wire.stream.cork()
    if (this.name === '' || wire.parsedStatements[this.name] === undefined) wire.parse(this)
    for (const { values } of this.#reads) {
      wire.bind({ statement: this.name, values })
      wire.execute({})
    }
    wire.sync()
    wire.stream.uncork()
  }

  /** The server runs nothing more of the batch, and neither do we. */
  handleError(error: Error): void {
    this.#rows.discard()
    this.#finish(error)
  }

  /** The server tells how many rows it has sent, e.g. `SELECT 13`. */
  handleCommandComplete({ text }: { text: string }): void {
    if (this.#wire === undefined) return
    const rows = this.#rows
    if (text !== `SELECT ${rows.count}`) {
      this.handleError(new Error('the rows of an answer did not all arrive'))
      return
    }
    const read = this.#reads.shift()
    this.#next()
    if (rows.refused) read?.reject(new DatabaseUnavailable(refusalOf(read)))
    else read?.resolve(rows.finish())
  }

  handleReadyForQuery(): void {
    this.#finish()
  }

  handleCopyInResponse(connection: Wire): void {
    connection.sendCopyFail('a SELECT was expected')
  }

  handleRowDescription(): void {}
  handleDataRow(): void {}
  handleEmptyQuery(): void {}
  handlePortalSuspended(): void {}
  handleCopyData(): void {}

  #next(): void {
    this.#rows = new RawRows(this.#reads[0]?.holding)
    if (this.#wire) this.#wire.rawRows = this.#rows
  }

  #finish(error?: Error): void {
    if (this.#wire) this.#wire.rawRows = undefined
    this.#wire = undefined
    this.#end(error)
  }
}

const refusalOf = ({ holding }: Read) =>
  holding?.over ? 'the client is gone' : 'answers fill the memory'
