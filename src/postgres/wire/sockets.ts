import { lookup } from 'node:dns'
import { type LookupFunction, Socket, type SocketConnectOpts } from 'node:net'

type Told = Parameters<LookupFunction>[2]

/** What all sockets read into, one after the other: whoever listens copies what is to stay. */
const received = Buffer.allocUnsafeSlow(262_144)

/**
 * Makes sockets that share one look-up of their server's name, and one buffer. A look-up that nobody
 * waits for any more goes on all the same, in one of the few threads that also compress answers: where a
 * name server is silent, each attempt at a connection would add another.
 */
export function createServerSockets(): () => Socket {
  const waiting = new Map<string, Told[]>()
  const lookUp: LookupFunction = (name, options, told) => {
    const others = waiting.get(name)
    if (others) {
      others.push(told)
      return
    }
    const all = [told]
    waiting.set(name, all)
    lookup(name, options, (error, address, family) => {
      waiting.delete(name)
      for (const tell of all) tell(error, address, family)
    })
  }
  return () => {
    const callback = (length: number) => {
      socket.emit('data', received.subarray(0, length))
      return true
    }
    const socket: Socket = new Socket({ onread: { buffer: received, callback } })
    const connect = socket.connect.bind(socket) as (to: SocketConnectOpts | string) => Socket
    // As pg calls it: with port and host, or with the path of a socket in the file system.
    const open = (to: number | string, host?: string) =>
      connect(typeof to === 'number' && host ? { port: to, host, lookup: lookUp } : String(to))
    return Object.assign(socket, { connect: open })
  }
}
