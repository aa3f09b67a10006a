import { once } from 'node:events'
import { connect } from 'node:net'

interface Answer {
  status: number
  /** Bytes of the body. */
  length: number
}

interface Exchange {
  ask(request: Buffer): Promise<Answer>
  close(): void
}

const HEAD_END = Buffer.from('\r\n\r\n')
// JSON holds no bare line break, so this cannot stand inside a body.
const LAST_CHUNK = Buffer.from('0\r\n\r\n')

/** One connection, on which one request follows the other. */
export async function openExchange(port: number): Promise<Exchange> {
  let answered: ((answer: Answer) => void) | undefined
  let failed: ((error: Error) => void) | undefined
  let reading: Reading = { received: 0 }
  const onData = (chunk: Buffer) => {
    if (!read(reading, chunk)) return
    const { status = 0, headLength = 0, received } = reading
    reading = { received: 0 }
    answered?.({ status, length: received - headLength })
  }
  // One buffer for all that arrives spares the garbage collector a good deal.
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
    ask: (request) =>
      new Promise((resolve, reject) => {
        answered = resolve
        failed = reject
        socket.write(request)
      }),
    close: () => socket.off('end', fail).destroy(),
  }
}

/** An answer of which a part has arrived. */
interface Reading {
  received: number
  status?: number
  headLength?: number
  /** Bytes of the whole answer; undefined where it comes in chunks. */
  expected?: number | undefined
  tail?: Buffer
}

/** Takes in what arrived; whether the answer is complete. */
function read(reading: Reading, chunk: Buffer): boolean {
  reading.received += chunk.length
  if (reading.headLength === undefined) {
    const end = chunk.indexOf(HEAD_END)
    if (end < 0) throw new Error('the head of an answer came in pieces')
    const head = chunk.toString('latin1', 0, end)
    reading.status = Number(head.slice(9, 12))
    reading.headLength = end + HEAD_END.length
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
    const chunked = length === undefined && reading.status !== 304
    reading.expected = chunked ? undefined : reading.headLength + Number(length ?? 0)
  }
  if (reading.expected !== undefined) return reading.received >= reading.expected
  // The end may arrive in two pieces.
  const tail = Buffer.concat([reading.tail ?? Buffer.alloc(0), chunk.subarray(-5)]).subarray(-5)
  reading.tail = Buffer.from(tail)
  return tail.equals(LAST_CHUNK)
}
