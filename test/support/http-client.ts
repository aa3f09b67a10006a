import { Agent, type IncomingMessage, request } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from 'node:zlib'

/** Headers of a response, with the methods of those of fetch(). */
export class ResponseHeaders {
  readonly #values = new Map<string, string>()

  constructor(rawHeaders: string[]) {
    for (let index = 0; index < rawHeaders.length; index += 2) {
      const name = String(rawHeaders[index]).toLowerCase()
      const before = this.#values.get(name)
      const value = String(rawHeaders[index + 1])
      this.#values.set(name, before === undefined ? value : `${before}, ${value}`)
    }
  }

  get(name: string): string | null {
    return this.#values.get(name.toLowerCase()) ?? null
  }

  has(name: string): boolean {
    return this.#values.has(name.toLowerCase())
  }

  keys(): string[] {
    return [...this].map(([name]) => name)
  }

  /** Names in lower case with their values, in the order of the names. */
  *[Symbol.iterator](): Iterator<[string, string]> {
    yield* [...this.#values].sort(([a], [b]) => (a < b ? -1 : 1))
  }
}

const DECODERS: Record<string, (body: Buffer) => Buffer> = {
  br: brotliDecompressSync,
  gzip: gunzipSync,
  zstd: zstdDecompressSync,
}

const agent = new Agent({ keepAlive: true })

/**
 * Sends a request without a body, as fetch() does, and reads the response. The first call of fetch() in a process takes
 * 60 ms of processor time, and it asks for compression.
 */
export async function sendRequest(
  url: string,
  { method = 'GET', headers = {} }: { method?: string; headers?: Record<string, string> } = {},
) {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  const options = { method, agent, headers: { accept: '*/*', ...headers } }
  request(new URL(url), options).on('response', resolve).on('error', reject).end()
  const response = await promise
  const body = await buffer(response)
  const decode = DECODERS[response.headers['content-encoding'] ?? '']
  return {
    status: Number(response.statusCode),
    headers: new ResponseHeaders(response.rawHeaders),
    text: (decode && body.length > 0 ? decode(body) : body).toString(),
  }
}
