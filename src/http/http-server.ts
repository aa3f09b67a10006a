import { createServer, type RequestListener, type Server } from 'node:http'
import type { Ajv } from 'ajv'
import type { Config } from '../config.ts'
import { isDay } from '../schemas/formats.ts'
import { serveOneByOne } from './pipelining.ts'
import { parseQuery } from './query-string.ts'

/** Every error of a query is reported, and no value is changed: parameters are strings. */
const VALIDATION = {
  allErrors: true,
  coerceTypes: false,
  removeAdditional: false,
  useDefaults: false,
  // It would compile the meta schema of JSON Schema at each start. `npm run check:openapi` checks the schemas.
  validateSchema: false,
} as const

/** Options of Fastify. docs/settings.md gives the reasons for its limits. The other limits are in src/limits. */
export function httpOptions({ TRUSTED_PROXIES }: Config) {
  return {
    // During shutdown, the service responds with `Connection: close`.
    return503OnClosing: false,
    trustProxy: TRUSTED_PROXIES ?? false,
    // A connection token of any length gets 404. Node.js limits the whole path.
    routerOptions: { maxParamLength: MAX_HEADER_BYTES, querystringParser: parseQuery },
    serverFactory: createLimitedServer,
    ajv: {
      customOptions: VALIDATION,
      // The library's own format accepts the year 0000, which PostgreSQL does not have.
      onCreate: (ajv: Ajv) => void ajv.addFormat('date', isDay),
    },
  }
}

const REQUEST_TIMEOUT_MS = 10_000

/** Time without progress of a response, in ms. A client that reads 10 KB/s shows progress once a minute. */
const STALL_MS = 120_000

/** Request line and all headers together. */
const MAX_HEADER_BYTES = 16_384

function createLimitedServer(handler: RequestListener): Server {
  const server = createServer({
    maxHeaderSize: MAX_HEADER_BYTES,
    requestTimeout: REQUEST_TIMEOUT_MS,
    // On a new connection, counted from its start.
    headersTimeout: REQUEST_TIMEOUT_MS,
    connectionsCheckingInterval: 1_000,
    // Longer than the 60 s of load balancers: they may otherwise send a request on a closing connection.
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
  serveOneByOne(server, handler)
  return server
}
