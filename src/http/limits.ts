import type { Config } from '../config.ts'

/**
 * Limits of the HTTP server. docs/operations.md gives the reasons. The limits of requests in flight are
 * in overload.ts, those of memory and database connections in src/postgres.
 */
export function httpLimits(config: Config) {
  return {
    // In bytes. No route reads a body.
    bodyLimit: 1_024,
    // Time for a complete request, in ms.
    requestTimeout: config.REQUEST_TIMEOUT_MS,
    // Load balancers usually close idle connections after 60 s. They must close first: otherwise they
    // may send a request on a connection that the service is closing.
    keepAliveTimeout: 72_000,
    // Unlimited.
    maxRequestsPerSocket: 0,
    // Time without progress on a connection with a request in flight. The kernel accepts large blocks,
    // so a client that reads 10 KB/s shows progress once a minute.
    connectionTimeout: config.CLIENT_STALL_MS,
    // During shutdown, the service responds with `Connection: close`.
    return503OnClosing: false,
    // A connection token of any length gets 404. Node.js limits the whole path.
    routerOptions: { maxParamLength: MAX_HEADER_BYTES },
    http: {
      maxHeaderSize: MAX_HEADER_BYTES,
      // On a new connection, counted from its start.
      headersTimeout: config.REQUEST_TIMEOUT_MS,
      // Interval at which Node.js checks both timeouts, in ms.
      connectionsCheckingInterval: 1_000,
      // malformed-requests.ts checks it, to send the common error body.
      requireHostHeader: false,
    },
  }
}

/** Request line and all headers together. */
const MAX_HEADER_BYTES = 16_384
