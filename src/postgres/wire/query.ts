import pg from 'pg'
import type { Parameter, Statement } from '../statements.ts'
import type { RawRows } from './raw-rows.ts'

interface QueryConnection extends pg.Connection {
  /** Statements that the server has parsed, and those that were sent to be parsed, by name. */
  parsedStatements: Record<string, string | undefined>
  submittedNamedStatements: Record<string, string | undefined>
  parse(message: { name: string; text: string }): void
  bind(message: { statement: string; values: Parameter[] }): void
  execute(message: object): void
  sync(): void
}

/**
 * SELECT for a pipelined client that leaves its rows as bytes. Other queries may be in flight on the same client. Each
 * ends with its own Sync, so it is a separate transaction and fails alone.
 */
export class RawQuery implements pg.Submittable {
  // pg's client records by both which statements are parsed.
  readonly name: string
  readonly text: string
  /** Receives the rows (client.ts); undefined once the query has ended. */
  rawRows: RawRows | undefined
  readonly #values: Parameter[]
  readonly #ended: (error?: Error) => void

  /** @param ended called once: with nothing, or with a pg.DatabaseError or the error of a broken connection */
  constructor(
    { name, text }: Statement,
    values: Parameter[],
    rows: RawRows,
    ended: (error?: Error) => void,
  ) {
    this.name = name
    this.text = text
    this.rawRows = rows
    this.#values = values
    this.#ended = ended
  }

  /** Sends Parse (the first time), Bind, Execute and Sync. The columns are known: no Describe. */
  submit(pgConnection: pg.Connection): void {
    const connection = pgConnection as QueryConnection
    const { name, text } = this
    const { stream, parsedStatements, submittedNamedStatements } = connection
    stream.cork()
    if (name === '' || (parsedStatements[name] ?? submittedNamedStatements[name]) === undefined) {
      connection.parse(this)
      if (name !== '') submittedNamedStatements[name] = text
    }
    connection.bind({ statement: name, values: this.#values })
    connection.execute({})
    connection.sync()
    stream.uncork()
  }

  handleError(error: Error): void {
    if (this.rawRows === undefined) return
    this.rawRows.discard()
    this.rawRows = undefined
    this.#ended(error)
  }

  /** The server sends the number of its rows, such as `SELECT 13`. */
  handleCommandComplete({ text }: { text: string }): void {
    if (this.rawRows === undefined) return
    if (text !== `SELECT ${this.rawRows.count}`) {
      this.handleError(new Error('the rows of a response did not all arrive'))
      return
    }
    this.rawRows = undefined
    this.#ended()
  }

  /** Fails a query that got neither a result nor an error, such as an empty one. */
  handleReadyForQuery(): void {
    if (this.rawRows) this.handleError(new Error('a SELECT was expected'))
  }

  handleRowDescription(): void {}
  handleDataRow(): void {}
}

// A pipelined client accepts only pg's own query class, because pg-cursor and similar classes keep a
// portal open. RawQuery does not. It inherits only methods that no SELECT needs.
Object.setPrototypeOf(RawQuery.prototype, pg.Query.prototype)
