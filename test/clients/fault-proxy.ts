import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import type { Test } from 'tap'

/**
 * `unavailable`: 503. `quota`: 429. `reset`: the connection is reset. `cut`: the connection ends in the
 * middle of the body. `silent`: no response. `page`: an HTML page with 404.
 */
export type Fault = 'none' | 'unavailable' | 'quota' | 'reset' | 'cut' | 'silent' | 'page'

export interface FaultProxy {
  url: string
  /** Number of requests by fault. */
  counts: Partial<Record<Fault, number>>
}

interface FaultProxyOptions {
  /** URL of the service. */
  target: string
  /** Returns the fault of the n-th request, from 0. */
  fault: (n: number, path: string) => Fault
  /** Seconds of Retry-After; '0' by default. */
  retryAfter?: string
  /** Runs before each request. */
  before?: () => Promise<void>
}

/** Starts an HTTP proxy that injects faults. */
export async function startFaultProxy(t: Test, options: FaultProxyOptions): Promise<FaultProxy> {
  const { target, fault, retryAfter = '0', before } = options
  const counts: Partial<Record<Fault, number>> = {}
  let requests = 0
  const server = createServer(async (incoming, response) => {
    const current = fault(requests, String(incoming.url))
    requests += 1
    counts[current] = (counts[current] ?? 0) + 1
    await before?.()
    if (current === 'silent') return
    if (current === 'page') sendPage(response)
    else if (current === 'reset') incoming.socket.resetAndDestroy()
    else if (current === 'unavailable') sendProblem(response, 503, retryAfter)
    else if (current === 'quota') sendProblem(response, 429, retryAfter)
    else await forward(target, incoming, response, current === 'cut')
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, counts }
}

function sendProblem(response: ServerResponse, status: 429 | 503, retryAfter: string): void {
  const code = status === 429 ? 'too_many_requests' : 'service_unavailable'
  const problem = { status, code, title: code, detail: 'Retry later.', requestId: randomUUID() }
  response.writeHead(status, { 'content-type': 'application/json', 'retry-after': retryAfter })
  response.end(JSON.stringify(problem))
}

function sendPage(response: ServerResponse): void {
  response.writeHead(404, { 'content-type': 'text/html' })
  response.end('<h1>Not found</h1>')
}

async function forward(
  target: string,
  { url = '/', headers }: IncomingMessage,
  response: ServerResponse,
  cut: boolean,
): Promise<void> {
  const outgoing = request(new URL(url, target), { headers, agent: false })
  const [result] = (await once(outgoing.end(), 'response')) as [IncomingMessage]
  const body = await buffer(result)
  if (!cut) {
    response.writeHead(result.statusCode ?? 502, result.headers)
    response.end(body)
    return
  }
  const socket = response.socket as Socket
  const lines = Object.entries(result.headers).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(`HTTP/1.1 ${result.statusCode} \r\n${lines.join('')}\r\n`)
  const half = body.subarray(0, body.length / 2)
  // The last chunk is missing, and no chunk is incomplete.
  if (result.headers['transfer-encoding'] === 'chunked')
    socket.end(
      Buffer.concat([Buffer.from(`${half.length.toString(16)}\r\n`), half, Buffer.from('\r\n')]),
    )
  else socket.end(half)
}
