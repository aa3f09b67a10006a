import type { Config } from '../config.ts'

/**
 * The limits of the HTTP server, all in one place; docs/operations.md gives their reasons at length.
 * That on requests is kept in plugins/overload.ts, those on memory and the database in src/database/.
 */
export function httpLimits(config: Config) {
  return {
    // A route answers before a body is read, and none takes one: this is for what might change.
    bodyLimit: 1_024,
    // A whole request has come in this time, or its client is told so and cut off.
    requestTimeout: config.REQUEST_TIMEOUT_MS,
    // Longer than the common balancers keep an idle connection (60 s), so that they close it, not we,
    // and never send a request into a connection that is just being closed.
    keepAliveTimeout: 72_000,
    // As often as the client likes on one connection: whoever balances may count for himself.
    maxRequestsPerSocket: 0,
    // Silence on a connection with a request under way. The kernel takes an answer in large bites, so
    // a client that reads 10 KB/s looks silent for a minute and more at a time.
    connectionTimeout: config.CLIENT_STALL_MS,
    // What comes while the process closes is answered like any other request, on a last connection.
    return503OnClosing: false,
    // A token of any length is looked up, and is then not found; Node limits the whole address.
    routerOptions: { maxParamLength: MOST_HEADER_BYTES },
    http: {
      maxHeaderSize: MOST_HEADER_BYTES,
      // All headers have come in this time, on a new connection counted from its start.
      headersTimeout: config.REQUEST_TIMEOUT_MS,
      // How often Node looks for requests that are late.
      connectionsCheckingInterval: 1_000,
      // malformed-requests.ts rejects it, with the error body of every error.
      requireHostHeader: false,
    },
  }
}

/** Node refuses what is longer: the request line and all headers together, in bytes. */
const MOST_HEADER_BYTES = 16_384
