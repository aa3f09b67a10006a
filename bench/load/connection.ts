import { once } from 'node:events'
import { connect } from 'node:net'

interface Received {
  status: number
  /** Bytes of the body. */
  length: number
}

interface Connection {
  send(request: Buffer): Promise<Received>
  close(): void
}

const HEAD_END = Buffer.from('\r\n\r\n')
// JSON holds no bare line break, so a body cannot contain this.
const LAST_CHUNK = Buffer.from('0\r\n\r\n')

/** Opens a connection that carries one request after the other. */
export async function openConnection(port: number): Promise<Connection> {
  let resolveResponse: ((response: Received) => void) | undefined
  let failed: ((error: Error) => void) | undefined
  let partial: PartialResponse = { received: 0 }
  const onData = (chunk: Buffer) => {
    if (!read(partial, chunk)) return
    const { status = 0, headLength = 0, received } = partial
    partial = { received: 0 }
    resolveResponse?.({ status, length: received - headLength })
  }
  // One buffer for all data: less garbage to collect.
  const socket = connect({
    port,
    host: '127.0.0.1',
    noDelay: true,
    onread: {
      buffer: Buffer.allocUnsafe(262_144),
      callback: (length, buffer) => {
        onData((buffer as Buffer).subarray(0, length))
        return true
      },
    },
  })
  const fail = (error?: Error) => failed?.(error ?? new Error(`port ${port} hung up`))
  socket.on('error', fail).on('end', fail)
  await once(socket, 'connect')
  return {
    send: (request) =>
      new Promise((resolve, reject) => {
        resolveResponse = resolve
        failed = reject
        socket.write(request)
      }),
    close: () => socket.off('end', fail).destroy(),
  }
}

interface PartialResponse {
  received: number
  status?: number
  headLength?: number
  /** Bytes of the whole response; undefined with chunked encoding. */
  expected?: number | undefined
  tail?: Buffer
}

/** Adds a chunk. @returns true when the response is complete */
function read(response: PartialResponse, chunk: Buffer): boolean {
  response.received += chunk.length
  if (response.headLength === undefined) {
    const end = chunk.indexOf(HEAD_END)
    if (end < 0) throw new Error('the head of a response arrived in pieces')
    const head = chunk.toString('latin1', 0, end)
    response.status = Number(head.slice(9, 12))
    response.headLength = end + HEAD_END.length
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
    const chunked = length === undefined && response.status !== 304
    response.expected = chunked ? undefined : response.headLength + Number(length ?? 0)
  }
  if (response.expected !== undefined) return response.received >= response.expected
  // The last chunk may arrive in two pieces.
  const tail = Buffer.concat([response.tail ?? Buffer.alloc(0), chunk.subarray(-5)]).subarray(-5)
  response.tail = Buffer.from(tail)
  return tail.equals(LAST_CHUNK)
}
