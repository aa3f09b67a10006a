import type pg from 'pg'
import type { RawRows } from './raw-rows.ts'
import type { TappedConnection } from './row-tap.ts'
import { DatabaseUnavailable } from './unavailable.ts'

/** A SELECT, compiled once. With a name it is prepared once per server connection. */
export interface Statement {
  name: string
  /** The same without the digest of its text, for people. */
  title: string
  text: string
}

export type Parameter = string | Buffer | null

/**
 * Runs one statement on a tapped client and resolves with its rows as bytes. Parse (the first time),
 * Bind, Execute and Sync leave in one packet; the description of the columns is not asked for, as we
 * know them. Rejects with pg's DatabaseError, or with the error of a connection that broke, and never
 * resolves with a part of the rows.
 */
export function runStatement(
  client: pg.ClientBase,
  statement: Statement,
  values: Parameter[],
  rows: RawRows,
): Promise<RawRows> {
  return new Promise((resolve, reject) => {
    client.query(new RawQuery(statement, values, rows, resolve, reject))
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
class RawQuery implements pg.Submittable {
  readonly name: string
  readonly text: string
  readonly #values: Parameter[]
  readonly #rows: RawRows
  readonly #resolve: (rows: RawRows) => void
  readonly #reject: (error: Error) => void
  #wire: Wire | undefined
  #whole = false

  constructor(
    { name, text }: Statement,
    values: Parameter[],
    rows: RawRows,
    resolve: (rows: RawRows) => void,
    reject: (error: Error) => void,
  ) {
    this.name = name
    this.text = text
    this.#values = values
    this.#rows = rows
    this.#resolve = resolve
    this.#reject = reject
  }

  submit(connection: pg.Connection): void {
    const wire = connection as Wire
    this.#wire = wire
    wire.rawRows = this.#rows
    wire.stream.cork()
    if (this.name === '' || wire.parsedStatements[this.name] === undefined) wire.parse(this)
    wire.bind({ statement: this.name, values: this.#values })
    wire.execute({})
    wire.sync()
    wire.stream.uncork()
  }

  handleError(error: Error): void {
    this.#detach()
    this.#rows.discard()
    this.#reject(error)
  }

  /** The server tells how many rows it has sent, e.g. `SELECT 13`. */
  handleCommandComplete({ text }: { text: string }): void {
    this.#whole = text === `SELECT ${this.#rows.count}`
  }

  handleReadyForQuery(): void {
    if (this.#rows.refused) {
      this.handleError(new DatabaseUnavailable('answers fill the memory'))
    } else if (this.#whole) {
      this.#detach()
      this.#resolve(this.#rows.finish())
    } else {
      this.handleError(new Error('the rows of an answer did not all arrive'))
    }
  }

  handleCopyInResponse(connection: Wire): void {
    connection.sendCopyFail('a SELECT was expected')
  }

  handleRowDescription(): void {}
  handleDataRow(): void {}
  handleEmptyQuery(): void {}
  handlePortalSuspended(): void {}
  handleCopyData(): void {}

  #detach(): void {
    if (this.#wire) this.#wire.rawRows = undefined
    this.#wire = undefined
  }
}
