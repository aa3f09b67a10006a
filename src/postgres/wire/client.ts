import { lookup } from 'node:dns'
import { type LookupFunction, Socket, type SocketConnectOpts } from 'node:net'
import pg from 'pg'
import { filterRows } from './row-filter.ts'

/** Client that pipelines queries and runs raw ones (query.ts). */
export class WireClient extends pg.Client {
  /** True if the server has reported that it is a standby (PostgreSQL 14 and later). */
  standby = false

  constructor(config: pg.ClientConfig) {
    super({ ...config, pipeline: true })
    filterRows(this)
    this.connection.on('parameterStatus', ({ parameterName, parameterValue }) => {
      if (parameterName === 'in_hot_standby') this.standby = parameterValue === 'on'
    })
  }

  /** Sends the queries of `send` in one packet. */
  sendTogether(send: () => void): void {
    const { stream } = this.connection
    stream.cork()
    try {
      send()
    } finally {
      stream.uncork()
    }
  }

  /** Closes the connection at once. Its queries in flight fail with the error. */
  destroy(error?: Error): void {
    this.connection.stream.destroy(error)
  }
}

type LookupCallback = Parameters<LookupFunction>[2]

/**
 * Creates sockets that share one read buffer and one DNS lookup. Listeners must copy what they keep.
 * Each lookup occupies one of the few threads that also compress responses, even if no caller waits for
 * it. With a silent name server, every attempt to connect would occupy another thread.
 */
export function createSockets(): () => Socket {
  const buffer = Buffer.allocUnsafeSlow(262_144)
  const waiting = new Map<string, LookupCallback[]>()
  const sharedLookup: LookupFunction = (name, options, callback) => {
    const others = waiting.get(name)
    if (others) {
      others.push(callback)
      return
    }
    const all = [callback]
    waiting.set(name, all)
    lookup(name, options, (error, address, family) => {
      waiting.delete(name)
      for (const each of all) each(error, address, family)
    })
  }
  return () => {
    const callback = (length: number) => {
      socket.emit('data', buffer.subarray(0, length))
      return true
    }
    const socket: Socket = new Socket({ onread: { buffer, callback } })
    const connect = socket.connect.bind(socket) as (to: SocketConnectOpts | string) => Socket
    // pg passes a port and a host, or the path of a Unix socket.
    const open = (to: number | string, host?: string) =>
      connect(
        typeof to === 'number' && host ? { port: to, host, lookup: sharedLookup } : String(to),
      )
    return Object.assign(socket, { connect: open })
  }
}
