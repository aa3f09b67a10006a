import { createServer, type RequestListener, type Server } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { Config } from '../config.ts'
import { serverUrls } from '../postgres/server-urls.ts'

declare module 'fastify' {
  interface FastifyInstance {
    state: ServiceState
  }
}

export interface ServiceState {
  /** Sockets with a request in flight. Each has one at a time. */
  open: Set<Socket>
  /** True during shutdown: the service still responds, but is not ready. */
  draining: boolean
}

/** Limits of the HTTP server. docs/settings.md gives the reasons. The other limits are in src/limits. */
export function httpLimits({ TRUSTED_PROXIES }: Config, state: ServiceState) {
  return {
    // During shutdown, the service responds with `Connection: close`.
    return503OnClosing: false,
    trustProxy: TRUSTED_PROXIES ?? false,
    // A connection token of any length gets 404. Node.js limits the whole path.
    routerOptions: { maxParamLength: MAX_HEADER_BYTES },
    serverFactory: (handler: RequestListener) => createLimitedServer(handler, state),
  }
}

/** Connections of clients, if the process may open as many files. Each one needs memory, even when idle. */
export const MAX_SOCKETS = 5_000

/** Time in which a client sends its request, in ms. */
const REQUEST_TIMEOUT_MS = 10_000

/**
 * Time without progress on a connection with a request in flight, in ms. The kernel accepts large blocks, so a client
 * that reads 10 KB/s shows progress once a minute.
 */
const STALL_MS = 120_000

/** Request line and all headers together. */
const MAX_HEADER_BYTES = 16_384

/** Files of Node.js itself, log, metrics and Redis. */
const RESERVED_FILES = 100

/**
 * Returns MAX_SOCKETS, or less if the process may not open as many files. If clients took all files, the
 * service could not connect to PostgreSQL.
 */
export function socketLimit({ DATABASE_POOL_SIZE, DATABASE_REPLICA_URL = '' }: Config): number {
  const report: { userLimits?: { open_files: { soft: number | 'unlimited' } } } =
    process.report.getReport()
  const files = report.userLimits?.open_files.soft
  if (typeof files !== 'number') return MAX_SOCKETS
  const servers = 1 + serverUrls(DATABASE_REPLICA_URL).length
  const free = files - servers * (DATABASE_POOL_SIZE + 1) - RESERVED_FILES
  return Math.min(MAX_SOCKETS, Math.max(1, free))
}

function createLimitedServer(handler: RequestListener, state: ServiceState): Server {
  const server = createServer({
    maxHeaderSize: MAX_HEADER_BYTES,
    requestTimeout: REQUEST_TIMEOUT_MS,
    // On a new connection, counted from its start.
    headersTimeout: REQUEST_TIMEOUT_MS,
    // Node.js checks both timeouts at this interval, in ms.
    connectionsCheckingInterval: 1_000,
    // Load balancers usually close idle connections after 60 s. Otherwise they may send a request on a
    // connection that the service is closing.
    keepAliveTimeout: 72_000,
    // rejectMalformed() checks it, to send the common error body.
    requireHostHeader: false,
    // Two headers Authorization or Host then match no rule. Otherwise Node.js would drop the second one.
    joinDuplicateHeaders: true,
  })
  server.setTimeout(STALL_MS)
  // RFC 9110, section 10.1.1: a server may ignore an expectation.
  for (const event of ['checkContinue', 'checkExpectation'])
    server.on(event, (request, response) => server.emit('request', request, response))
  serveOneByOne(server, handler, state)
  return server
}

/** Node.js documents no other way to end the parser of a socket. */
interface ParsedSocket extends Socket {
  parser?: { onIncoming: () => number }
}

/**
 * Serves one request at a time on each socket. A second one before the end of the response closes the socket: no usual
 * client pipelines, and the responses behind the first one would wait in memory.
 */
function serveOneByOne(server: Server, handler: RequestListener, { open }: ServiceState): void {
  server.on('request', (request, response) => {
    const socket: ParsedSocket = request.socket
    if (open.has(socket)) {
      // 2 ends the parser. It would otherwise parse 2,400 requests of a chunk, which takes 0.1 s.
      if (socket.parser) socket.parser.onIncoming = () => 2
      socket.destroy()
      return
    }
    open.add(socket)
    response.once('close', () => open.delete(socket))
    handler(request, response)
  })
}

/** Warns once that requests came through a proxy: without TRUSTED_PROXIES, all its clients have one address. */
export const proxyWarning = fp(async (app: FastifyInstance) => {
  let isWarned = false
  app.addHook('onRequest', (request, _reply, next) => {
    if (!isWarned && request.headers['x-forwarded-for'] !== undefined) {
      isWarned = true
      const advice = 'set TRUSTED_PROXIES, or all clients share the limits of one address'
      app.log.warn({ proxy: request.ip }, `a request came through a proxy: ${advice}`)
    }
    next()
  })
})
