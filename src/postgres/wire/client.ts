import { EventEmitter } from 'node:events'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type pg from 'pg'
import type { RawRows } from './query.ts'
import { SafeClient } from './safe-client.ts'

/** Client that pipelines queries and runs raw ones (query.ts). */
export class WireClient extends SafeClient {
  /** True if the server has reported that it is a standby (PostgreSQL 14 and later). */
  standby = false

  constructor(config: pg.ClientConfig) {
    super({ stream: createSocket, ...config, pipeline: true })
    const client = this as unknown as Internals
    const { connection } = client
    const attach = connection.attachListeners.bind(connection)
    connection.attachListeners = (stream) => attach(withoutRows(stream, client))
    connection.on('parameterStatus', ({ parameterName, parameterValue }) => {
      if (parameterName === 'in_hot_standby') this.standby = parameterValue === 'on'
    })
  }

  /** True if the connection has ended, also before a listener of `end`. */
  get isEnded(): boolean {
    return this.connection.stream.destroyed
  }

  /** Closes the connection, also before the end of the last answer: pg waits for it, and a silent server never sends it. */
  leave(): void {
    ;(this as unknown as Internals)._ending = true
    this.connection.end()
  }

  /** Sends the queries of `send` in one packet. */
  sendTogether<T>(send: (argument: T) => void, argument: T): void {
    const { stream } = this.connection
    stream.cork()
    try {
      send(argument)
    } finally {
      stream.uncork()
    }
  }
}

/** Private parts of pg's client. */
interface Internals {
  connection: pg.Connection & { attachListeners(stream: Duplex | EventEmitter): void }
  _activeQuery?: { rawRows?: RawRows } | null
  /** True if the end of the connection is no error. */
  _ending: boolean
}

const DATA_ROW = 0x44
const HEADER = 5

/**
 * Takes DataRow messages of raw queries out of a stream. pg would make a string of every field. For a full page, this
 * costs more than all other work of the service (docs/decisions/experiments.md).
 * @returns the stream for pg's parser, which listens for `data` and `end` only. The parser keeps parts of its input, so
 * it gets copies: all sockets read into one buffer
 */
function withoutRows(stream: Duplex | EventEmitter, client: Internals): EventEmitter {
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
          const error = new Error('the server sent a message that is not PostgreSQL')
          client.connection.stream.destroy(error)
          return
        }
        if (chunk[at] === DATA_ROW) {
          // The messages before this row may end a query: pg then makes the next one active.
          pass(chunk, passed, at)
          passed = at
          target = client._activeQuery?.rawRows
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

/** All sockets read into this buffer. A buffer for each read would cost half as much processor time again. */
const READ_BUFFER = Buffer.allocUnsafeSlow(262_144)

/** Creates a socket. Its listeners must copy what they keep. */
function createSocket(): Socket {
  const callback = (length: number) => {
    socket.emit('data', READ_BUFFER.subarray(0, length))
    return true
  }
  const socket = new Socket({ onread: { buffer: READ_BUFFER, callback } })
  return socket
}
