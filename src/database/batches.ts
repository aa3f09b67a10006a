import type { Read } from './batch-query.ts'
import type { Statement } from './statement.ts'

/**
 * How many reads share a round trip at most. More of them would keep the server's other processors idle
 * for the sake of fewer packets; docs/performance.md has what was measured.
 */
const MOST = 8

export interface Batches<R extends Read> {
  /** Takes a read, to be sent at the end of this turn of the event loop, or when there is room. */
  add(statement: Statement, read: R): void
  /** Sends what waits, as far as there is room. */
  flush(): void
}

export interface BatchOptions<R extends Read> {
  send(statement: Statement, reads: R[]): void
  /** Whether another round trip may begin. */
  hasRoom(): boolean
  /** Whether the server is slow now. */
  isSlow(): boolean
}

/**
 * Gathers the reads of the same statement that come up within one turn of the event loop, or while all
 * connections are in use. Under load, waking the other side for every single one costs more than
 * answering it. The server sends what is short when it has done all of a batch: so where it is slow, each
 * read goes alone.
 */
export function createBatches<R extends Read>(options: BatchOptions<R>): Batches<R> {
  const waiting = new Map<Statement, R[]>()
  let scheduled = false

  const flush = () => {
    scheduled = false
    // Each statement in turn; one that has more to send comes again behind the others.
    for (const [statement, reads] of waiting) {
      if (!options.hasRoom()) return
      waiting.delete(statement)
      const batch = reads.splice(0, options.isSlow() ? 1 : MOST)
      if (reads.length > 0) waiting.set(statement, reads)
      options.send(statement, batch)
    }
  }
  return {
    flush,
    add: (statement, read) => {
      const reads = waiting.get(statement)
      if (reads) reads.push(read)
      else waiting.set(statement, [read])
      if (!scheduled) setImmediate(flush)
      scheduled = true
    },
  }
}
