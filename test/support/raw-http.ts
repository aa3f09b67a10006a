import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

export interface RawAnswer {
  status: number
  /** By lower-case name; of a header that comes twice, the last. */
  headers: Map<string, string>
  text: string
}

export interface Sent {
  port: number
  /** What goes over the wire, byte for byte (a string as latin1); several pieces, one after the other. */
  bytes: string | Buffer | (string | Buffer)[]
  /** How many answers to wait for; fewer come back where the server closes. */
  answers?: number
}

/** After this long without the answers that were asked for, the server hangs. */
const PATIENCE_MS = 20_000

/**
 * Talks to the server without an HTTP client between, which would refuse to send what these tests are
 * about. Resolves with the answers, and whether the server closed the connection behind them.
 * @throws when the server leaves the client waiting
 */
export async function sendRaw({ port, bytes, answers = 1 }: Sent) {
  const socket = connect({ port, host: '127.0.0.1' })
  const patience = sleep(PATIENCE_MS, undefined, { ref: false }).then(() => 'hangs')
  let received = Buffer.alloc(0)
  let closed = false
  // A server that has answered may reset the connection on what was still on its way to it.
  socket.on('error', () => {})
  const end = once(socket, 'close').then(() => {
    closed = true
  })
  const enough = new Promise<void>((resolve) => {
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk])
      if (answersIn(received).length >= answers) resolve()
    })
  })
  for (const piece of [bytes].flat()) {
    socket.write(typeof piece === 'string' ? Buffer.from(piece, 'latin1') : piece)
    await sleep(1)
  }
  const outcome = await Promise.race([patience, enough, end])
  if (outcome === 'hangs') throw new Error(`no answer to ${String(bytes).slice(0, 200)}`)
  socket.destroy()
  return { answers: answersIn(received), closed, received: received.toString('latin1') }
}

/** The whole answers among the bytes, in order. */
function answersIn(received: Buffer): RawAnswer[] {
  const answers: RawAnswer[] = []
  for (let rest = received; ; ) {
    const end = rest.indexOf('\r\n\r\n')
    if (end < 0) return answers
    const [line, ...fields] = rest.toString('latin1', 0, end).split('\r\n')
    const headers = new Map(
      fields.map((field) => {
        const colon = field.indexOf(':')
        return [field.slice(0, colon).toLowerCase(), field.slice(colon + 1).trim()]
      }),
    )
    const length = Number(headers.get('content-length') ?? 0)
    const from = end + 4
    if (rest.length < from + length) return answers
    const text = rest.toString('utf8', from, from + length)
    answers.push({ status: Number(line?.split(' ')[1]), headers, text })
    rest = rest.subarray(from + length)
  }
}
