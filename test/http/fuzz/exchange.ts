import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from 'node:zlib'
import type { Request } from './requests.ts'

export interface Response {
  status: number
  headers: Map<string, string>
  text: string
}

export type Result = Response[] | 'timeout'

/** Timeout of a request. Long, because other tests may keep the machine busy. */
const LIMIT_MS = 60_000

/** Client that reuses its connection until the server closes it. */
export class Client {
  readonly #port: number
  #socket: Socket | undefined
  /** Last request on this connection; undefined on a new one. */
  previous: Request | undefined

  constructor(port: number) {
    this.#port = port
  }

  /** Sends the bytes of a request. A malformed one half-closes its connection. */
  async send(request: Request): Promise<Result> {
    const { bytes, method, malformed } = request
    const socket = this.#open()
    this.previous = request
    let received = Buffer.alloc(0)
    const responses = () => responsesIn(received, method)
    const done = new Promise<void>((resolve) => {
      socket.on('data', (chunk) => {
        received = Buffer.concat([received, chunk])
        if (!malformed && responses().length > 0) resolve()
      })
      socket.once('close', () => resolve())
    })
    if (malformed) socket.end(bytes, 'latin1')
    else socket.write(bytes, 'latin1')
    const limit = new AbortController()
    const late = sleep(LIMIT_MS, 'timeout' as const, { signal: limit.signal }).catch(
      () => undefined,
    )
    const timeout = await Promise.race([done, late])
    limit.abort()
    socket.removeAllListeners('data').removeAllListeners('close')
    const last = responses().at(-1)
    if (malformed || timeout || !last || last.headers.get('connection') === 'close') this.close()
    return timeout ?? responses()
  }

  close(): void {
    this.#socket?.destroy()
    this.#socket = undefined
    this.previous = undefined
  }

  #open(): Socket {
    if (this.#socket === undefined || this.#socket.destroyed || this.#socket.readableEnded) {
      this.#socket = connect({ port: this.#port, host: '127.0.0.1' })
      // After its response, a server may reset the connection, because request bytes are still in transit.
      this.#socket.on('error', () => {})
    }
    return this.#socket
  }
}

function responsesIn(received: Buffer, method: string): Response[] {
  const responses: Response[] = []
  for (let rest = received; ; ) {
    const end = rest.indexOf('\r\n\r\n')
    if (end < 0) return responses
    const [line = '', ...fields] = rest.toString('latin1', 0, end).split('\r\n')
    const headers = new Map(
      fields.map((field) => {
        const [name = '', ...value] = field.split(': ')
        return [name.toLowerCase(), value.join(': ')]
      }),
    )
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(line)?.[1])
    const none = method === 'HEAD' || status === 304 || status < 200
    const body = none
      ? { bytes: Buffer.alloc(0), length: 0 }
      : bodyIn(rest.subarray(end + 4), headers)
    if (body === undefined) return responses
    // 100 Continue precedes the response.
    if (status !== 100) responses.push({ status, headers, text: decoded(body.bytes, headers) })
    rest = rest.subarray(end + 4 + body.length)
  }
}

function bodyIn(rest: Buffer, headers: Map<string, string>) {
  if (headers.get('transfer-encoding') !== 'chunked') {
    const length = Number(headers.get('content-length') ?? 0)
    return rest.length < length ? undefined : { bytes: rest.subarray(0, length), length }
  }
  const chunks: Buffer[] = []
  for (let at = 0; ; ) {
    const line = rest.indexOf('\r\n', at)
    if (line < 0) return undefined
    const size = Number.parseInt(rest.toString('latin1', at, line), 16)
    const end = line + 2 + size
    if (rest.length < end + 2) return undefined
    if (size === 0) return { bytes: Buffer.concat(chunks), length: end + 2 }
    chunks.push(rest.subarray(line + 2, end))
    at = end + 2
  }
}

const DECODERS: Record<string, (bytes: Buffer) => Buffer> = {
  gzip: gunzipSync,
  br: brotliDecompressSync,
  zstd: zstdDecompressSync,
}

function decoded(bytes: Buffer, headers: Map<string, string>): string {
  const decode = DECODERS[headers.get('content-encoding') ?? '']
  return (decode && bytes.length > 0 ? decode(bytes) : bytes).toString()
}
