import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { digestOf, type Question } from './truth.ts'

/** A client that takes its answer in small bites, or stops taking it. */
export interface SlowReader {
  /** Resolves with the first bytes of the answer. */
  begun: Promise<unknown>
  /** What there is of the body when the connection is closed. */
  end: Promise<{ digest: string; bytes: number }>
  leave(): void
}

export interface Asked extends Question {
  port: number
}

/** @param bytesPerSecond 0 for one who takes the first bytes, and then none */
export function readSlowly({ port, path, token }: Asked, bytesPerSecond: number): SlowReader {
  // Paused from the start, so that the socket takes nothing but what is asked for.
  const socket = connect({ port, host: '127.0.0.1' }).pause()
  socket.on('error', () => {})
  // HTTP/1.0, for a body that comes as it is and ends with the connection.
  socket.write(`GET ${path} HTTP/1.0\r\nAuthorization: Bearer ${token}\r\n\r\n`)
  const chunks: Buffer[] = []
  let closed = false
  const close = once(socket, 'close').then(() => {
    closed = true
  })
  const begun = Promise.race([once(socket, 'readable'), close])
  const read = async () => {
    await begun
    while (!closed && bytesPerSecond > 0) {
      const most = Math.min(bytesPerSecond / TURNS, socket.readableLength)
      const chunk: Buffer | null = most > 0 ? socket.read(most) : socket.read()
      if (chunk) chunks.push(chunk)
      await sleep(1_000 / TURNS)
    }
    await close
    const answer = Buffer.concat(chunks)
    return await digestOf([answer.subarray(answer.indexOf('\r\n\r\n') + 4)])
  }
  return { begun, end: read(), leave: () => socket.destroy() }
}

/** Bites per second. */
const TURNS = 20
