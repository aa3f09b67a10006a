import { EventEmitter } from 'node:events'
import type { Duplex } from 'node:stream'
import type pg from 'pg'
import type { RawRows } from './raw-rows.ts'

/** pg's connection with the private parts that this folder uses, and one field of our own. */
export interface WireConnection extends pg.Connection {
  /** Receivers of rows, one for each raw query in flight, in the order of the queries. */
  rowTargets: RawRows[]
  attachListeners(stream: Duplex | EventEmitter): void
}

/**
 * Lets raw queries receive rows as bytes. pg makes a string of every field, which costs more for a full
 * page than all other work of the service (docs/performance.md). The filter takes DataRow messages out
 * of the stream before pg's parser sees it. All other messages pass, and so do the rows of queries that
 * are not raw.
 */
export function filterRows(client: pg.Client): void {
  const { connection } = client as unknown as { connection: WireConnection }
  connection.rowTargets = []
  const attach = connection.attachListeners.bind(connection)
  connection.attachListeners = (stream) => attach(withoutRows(stream, connection))
}

const DATA_ROW = 0x44
const HEADER = 5

/**
 * Returns the stream for pg's parser, which listens for `data` and `end` only. The parser keeps parts of
 * its input, so it gets copies: all sockets read into one buffer (sockets.ts).
 */
function withoutRows(stream: Duplex | EventEmitter, connection: WireConnection): EventEmitter {
  const rest = new EventEmitter()
  let carried: Buffer | undefined
  let remaining = 0
  let target: RawRows | undefined

  const pass = (chunk: Buffer, start: number, end: number) => {
    if (end > start) rest.emit('data', Buffer.from(chunk.subarray(start, end)))
  }
  stream.on('data', (received: Buffer) => {
    const chunk = carried ? Buffer.concat([carried, received]) : received
    carried = undefined
    let passed = 0
    let at = 0
    while (at < chunk.length) {
      if (remaining === 0) {
        if (chunk.length - at < HEADER) {
          carried = Buffer.from(chunk.subarray(at))
          break
        }
        remaining = chunk.readInt32BE(at + 1) + 1
        if (remaining < HEADER) {
          connection.stream.destroy(new Error('the server sent a message that is not PostgreSQL'))
          return
        }
        if (chunk[at] === DATA_ROW && connection.rowTargets.length > 0) {
          // The messages before this row may end the query before its own.
          pass(chunk, passed, at)
          passed = at
          target = connection.rowTargets[0]
        }
        if (target) {
          remaining -= 1
          at += 1
          target.begin(remaining)
        }
      }
      const end = Math.min(at + remaining, chunk.length)
      target?.append(chunk, at, end)
      remaining -= end - at
      at = end
      if (target) passed = at
      if (remaining === 0) target = undefined
    }
    pass(chunk, passed, at)
  })
  stream.on('end', () => rest.emit('end'))
  return rest
}
