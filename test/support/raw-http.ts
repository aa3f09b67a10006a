import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

export interface RawResponse {
  status: number
  /** By lower-case name. Of a repeated header, the last value. */
  headers: Map<string, string>
  text: string
}

export interface Sent {
  port: number
  /** Bytes to send, a string as latin1. Several pieces are sent one after the other. */
  bytes: string | Buffer | (string | Buffer)[]
  /** Address of the client. */
  localAddress?: string
  /** Number of responses to wait for. The server may close the connection earlier. */
  responses?: number
}

/** Time for the responses. */
const TIMEOUT_MS = 60_000

/**
 * Sends bytes that an HTTP client would not send.
 * @returns the responses, and whether the server closed the connection
 * @throws Error if the server neither responds nor closes in time
 */
export async function sendRaw({ port, bytes, localAddress, responses = 1 }: Sent) {
  const socket = connect({ port, host: '127.0.0.1', ...(localAddress ? { localAddress } : {}) })
  const received: Buffer[] = []
  const found: RawResponse[] = []
  let rest = Buffer.alloc(0)
  let closed = false
  // A server that has responded may reset the connection when more bytes arrive.
  socket.on('error', () => {})
  const end = new Promise<void>((resolve) => {
    socket.once('close', () => {
      closed = true
      resolve()
    })
  })
  const enough = new Promise<void>((resolve) => {
    socket.on('data', (chunk) => {
      received.push(chunk)
      rest = takeResponses(Buffer.concat([rest, chunk]), found)
      if (found.length >= responses) resolve()
    })
  })
  for (const piece of [bytes].flat()) {
    socket.write(typeof piece === 'string' ? Buffer.from(piece, 'latin1') : piece)
    await sleep(1)
  }
  // It starts here: a busy machine may take as long to send many pieces.
  const timeout = sleep(TIMEOUT_MS, undefined, { ref: false }).then(() => 'hangs')
  const result = await Promise.race([timeout, enough, end])
  if (result === 'hangs') throw new Error(`no response to ${String(bytes).slice(0, 200)}`)
  socket.destroy()
  return { responses: found, closed, received: Buffer.concat(received).toString('latin1') }
}

/** Adds the complete responses to `responses`, in order, and returns the bytes after them. */
function takeResponses(received: Buffer<ArrayBuffer>, responses: RawResponse[]) {
  for (let rest = received; ; ) {
    const end = rest.indexOf('\r\n\r\n')
    if (end < 0) return rest
    const [line, ...fields] = rest.toString('latin1', 0, end).split('\r\n')
    const headers = new Map(
      fields.map((field) => {
        const colon = field.indexOf(':')
        return [field.slice(0, colon).toLowerCase(), field.slice(colon + 1).trim()]
      }),
    )
    const length = Number(headers.get('content-length') ?? 0)
    const from = end + 4
    if (rest.length < from + length) return rest
    const text = rest.toString('utf8', from, from + length)
    responses.push({ status: Number(line?.split(' ')[1]), headers, text })
    rest = rest.subarray(from + length)
  }
}
