import { Agent, request } from 'node:http'
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from 'node:zlib'
import type { ServiceRequest } from './requests.ts'

export interface Recorded {
  /** HTTP status; for a connection that was closed without a response, the code of its error. */
  status: number | string
  /** In the order of the response. */
  headers: [name: string, value: string][]
  body: Buffer
}

const agent = new Agent({ keepAlive: true, maxSockets: 1 })

/** Sends a request, and reads the response as it is. */
export function exchange(port: number, { method, target, headers }: ServiceRequest) {
  return new Promise<Recorded>((resolve) => {
    const fail = (error: NodeJS.ErrnoException) =>
      resolve({ status: error.code ?? error.message, headers: [], body: Buffer.alloc(0) })
    const sent = request(
      { agent, host: '127.0.0.1', port, method, path: target, headers, setHost: false },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', fail)
        response.on('end', () => {
          const { rawHeaders, statusCode = 0 } = response
          resolve({
            status: statusCode,
            headers: pairsOf(rawHeaders),
            body: Buffer.concat(chunks),
          })
        })
      },
    )
    sent.on('error', fail)
    sent.end()
  })
}

export function closeConnections(): void {
  agent.destroy()
}

export function headerOf({ headers }: Recorded, name: string): string | undefined {
  return headers.find(([each]) => each === name)?.[1]
}

/** The body without its compression. A response to HEAD, and a 304, have none. */
export function decodedBody(response: Recorded): Buffer {
  const { body } = response
  if (body.length === 0) return body
  const encoding = headerOf(response, 'content-encoding')
  if (encoding === 'gzip') return gunzipSync(body)
  if (encoding === 'br') return brotliDecompressSync(body)
  if (encoding === 'zstd') return zstdDecompressSync(body)
  return body
}

function pairsOf(raw: string[]): [string, string][] {
  const pairs: [string, string][] = []
  for (let at = 0; at < raw.length; at += 2)
    pairs.push([String(raw[at]).toLowerCase(), String(raw[at + 1])])
  return pairs
}
