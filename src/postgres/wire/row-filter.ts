import { EventEmitter } from 'node:events'
import type { Duplex } from 'node:stream'
import type pg from 'pg'
import type { RawRows } from './raw-rows.ts'

/** What pg keeps per server connection, with the one field that we add to it. */
export interface TappedConnection extends pg.Connection {
  /** Where the rows of the running statement go, instead of through pg's parser. */
  rawRows: RawRows | undefined
  attachListeners(stream: Duplex | EventEmitter): void
}

/**
 * Lets a statement have its rows as bytes. pg makes a string of every field of every row, which for a
 * full page costs more than everything else the service does to it (docs/performance.md). Here the
 * DataRow messages are lifted out of the stream before pg's parser sees it; all other messages, and the
 * rows of statements that did not ask, pass through untouched.
 */
export function tapRows(client: pg.Client): pg.Client {
  const { connection } = client as unknown as { connection: TappedConnection }
  const attach = connection.attachListeners.bind(connection)
  connection.attachListeners = (stream) => attach(withoutRows(stream, connection))
  return client
}

const DATA_ROW = 0x44
const HEADER = 5

/**
 * The stream as pg's parser shall see it: only `data` and `end` are listened for there. It keeps parts of
 * what it is given, and so is given copies: the sockets read into one buffer (server-sockets.ts).
 */
function withoutRows(stream: Duplex | EventEmitter, connection: TappedConnection): EventEmitter {
  const rest = new EventEmitter()
  let carried: Buffer | undefined
  let remaining = 0
  let lifting: RawRows | undefined

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
          connection.stream.destroy(new Error('what the server sends is not PostgreSQL'))
          return
        }
        if (chunk[at] === DATA_ROW && connection.rawRows) {
          if (at > passed) rest.emit('data', Buffer.from(chunk.subarray(passed, at)))
          passed = at
          // What came before this row may have ended the read that it belongs to.
          lifting = connection.rawRows
        }
        if (lifting) {
          remaining -= 1
          at += 1
          lifting.begin(remaining)
        }
      }
      const end = Math.min(at + remaining, chunk.length)
      lifting?.append(chunk, at, end)
      remaining -= end - at
      at = end
      if (lifting) passed = at
      if (remaining === 0) lifting = undefined
    }
    if (at > passed) rest.emit('data', Buffer.from(chunk.subarray(passed, at)))
  })
  stream.on('end', () => rest.emit('end'))
  return rest
}
