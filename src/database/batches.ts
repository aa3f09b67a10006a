import type { Read } from './batch-query.ts'
import type { Statement } from './statement.ts'

/**
 * How many reads share a round trip at most. More of them would keep the server's other processors idle
 * for the sake of fewer packets; docs/performance.md has what was measured.
 */
const MOST = 8

/**
 * Gathers the reads of the same statement that come up within one turn of the event loop. Under load,
 * waking the other side for every single one costs more than answering it. The server sends what is short
 * when it has done all of a batch: so where it is slow, each read goes alone.
 * @param send takes reads whose time has come
 * @param slow whether the server is slow now
 */
export function createBatches<R extends Read>(
  send: (statement: Statement, reads: R[]) => void,
  slow: () => boolean,
): (statement: Statement, read: R) => void {
  const open = new Map<Statement, R[]>()
  const flush = () => {
    const all = [...open]
    open.clear()
    for (const [statement, reads] of all) send(statement, reads)
  }
  return (statement, read) => {
    const reads = open.get(statement) ?? []
    reads.push(read)
    if (reads.length === MOST || slow()) {
      open.delete(statement)
      send(statement, reads)
      return
    }
    if (open.size === 0) setImmediate(flush)
    open.set(statement, reads)
  }
}
