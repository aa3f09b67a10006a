import pg from 'pg'
import type { MemoryAccount } from '../../limits/memory-account.ts'
import type { Parameter, Statement } from '../statements.ts'

interface QueryConnection extends pg.Connection {
  /** Statements that were sent to be parsed, by name. */
  submittedNamedStatements: Record<string, string | undefined>
  parse(message: { name: string; text: string }): void
  bind(message: { statement: string; values: Parameter[] }): void
  execute(message: object): void
  sync(): void
}

/** SELECT whose rows stay bytes. It ends with its own Sync, so it is a separate transaction and fails alone. */
export class RawQuery extends pg.Query {
  declare readonly text: string
  declare readonly values: Parameter[]
  // These two replace the fields of pg.Query. pg would copy a configuration, which costs as much as all other work of a query.
  readonly name: string
  readonly queryMode = 'extended'
  declare readonly hasBeenParsed: (connection: pg.Connection) => boolean
  /** Receives the rows (client.ts); undefined once the query has ended. */
  rawRows: RawRows | undefined
  readonly #ended: (error?: Error) => void

  /** @param ended called once: with nothing, or with a pg.DatabaseError or the error of a broken connection */
  constructor(
    { name, text }: Statement,
    values: Parameter[],
    rows: RawRows,
    ended: (error?: Error) => void,
  ) {
    super(text, values)
    this.name = name
    this.rawRows = rows
    this.#ended = ended
  }

  /** Sends Parse (the first time), Bind, Execute and Sync. The columns are known: no Describe. */
  prepare(connection: QueryConnection): void {
    const { name, text, values } = this
    if (!this.hasBeenParsed(connection)) {
      connection.parse({ name, text })
      if (name !== '') connection.submittedNamedStatements[name] = text
    }
    connection.bind({ statement: name, values })
    connection.execute({})
    connection.sync()
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

  /** A statement without text gets neither a result nor an error. */
  handleEmptyQuery(): void {
    this.handleError(new Error('a SELECT was expected'))
  }
}

// In bytes. The first block has room for a daily sync of a dozen rows. For a full page, blocks grow.
const FIRST_BLOCK = 4_096
const LAST_BLOCK = 65_536
/** Minimum number of rows in a later block, however long they are. */
const ROWS_PER_BLOCK = 16

/** Memory with whole rows between `start` and `end`. */
interface Block {
  memory: Buffer
  start: number
  end: number
}

/**
 * Rows as PostgreSQL sent them, in blocks. A row has an int32 length (which includes itself), an int16 field count, and
 * its fields. A field has an int32 length (-1 is null) and its bytes of text. No value becomes a string or a number.
 */
export class RawRows {
  count = 0
  byteLength = 0
  /** Error if the request got no memory. RawRows then keeps no row. */
  error: Error | undefined
  readonly #memory: MemoryAccount | undefined
  #blocks: Block[] = []
  #last: Block | undefined

  /** @param memory undefined for rows that are not counted */
  constructor(memory?: MemoryAccount) {
    this.#memory = memory
  }

  /** Makes room for a row of `length` bytes, which append() receives. */
  begin(length: number): void {
    this.count += 1
    this.byteLength += length
    const last = this.#last
    if (this.error || (last && last.end + length <= last.memory.length)) return
    const account = this.#memory
    // Rows that are not counted are few and short: Node.js cuts their memory from a larger buffer.
    const usual = account ? Math.min(FIRST_BLOCK * 4 ** this.#blocks.length, LAST_BLOCK) : 0
    // For rows of 40 KB, a block of one row would waste a third of it.
    const size = Math.max(usual, length * Math.min(this.#blocks.length + 1, ROWS_PER_BLOCK))
    this.error = account?.refusal(size)
    if (this.error) {
      this.discard()
      return
    }
    const memory = account?.take(size) ?? Buffer.allocUnsafe(size)
    this.#last = { memory, start: 0, end: 0 }
    this.#blocks.push(this.#last)
  }

  append(chunk: Buffer, start: number, end: number): void {
    if (this.#last) this.#last.end += chunk.copy(this.#last.memory, this.#last.end, start, end)
  }

  /** Removes the first row and returns its fields as text. */
  shift(): (string | null)[] | undefined {
    for (const block of this.#blocks) {
      const { memory, start, end } = block
      if (start === end) continue
      const length = memory.readInt32BE(start)
      this.count -= 1
      this.byteLength -= length
      block.start += length
      const fields: (string | null)[] = []
      let at = start + 6
      for (let left = memory.readInt16BE(start + 4); left > 0; left -= 1) {
        const size = memory.readInt32BE(at)
        at += 4
        fields.push(size < 0 ? null : memory.toString('utf8', at, at + size))
        if (size > 0) at += size
      }
      return fields
    }
    return undefined
  }

  /** Yields the blocks. The next call releases the memory of the last block. */
  *takeBlocks(): Generator<Buffer, void, undefined> {
    for (let [block] = this.#blocks; block; [block] = this.#blocks) {
      yield block.memory.subarray(block.start, block.end)
      // discard() may have dropped it.
      if (this.#blocks.shift()) this.#memory?.giveBack(block.memory)
    }
  }

  /** Drops all rows. The pool does not reuse their blocks, because a caller may still use one. */
  discard(): void {
    for (const { memory } of this.#blocks) this.#memory?.count(-memory.length)
    this.#blocks = []
    this.#last = undefined
  }
}
