import { setTimeout as sleep } from 'node:timers/promises'
import closeWithGrace, { type Options } from 'close-with-grace'
import type { FastifyInstance } from 'fastify'
import type { Config } from './config.ts'

/**
 * Handles SIGTERM and Ctrl-C. After SIGTERM, the service is not ready for SHUTDOWN_DELAY_MS but accepts
 * requests, so that load balancers notice. Other signals skip this delay. Requests in flight have until shutdownMs()
 * (exit code 0). A second signal or a timeout ends the process with exit code 1, because a response is incomplete.
 * @param close called when no request is left
 */
export function closeOnSignal(
  app: FastifyInstance,
  config: Config,
  close: () => Promise<void>,
): void {
  let acceptedAt = Number.NEGATIVE_INFINITY
  app.server.on('connection', () => {
    acceptedAt = performance.now()
  })
  const isExpectingRequest = () => performance.now() - acceptedAt < FIRST_REQUEST_MS
  const options: Options = { delay: shutdownMs(config), logger: app.log, skip: ['SIGHUP'] }
  closeWithGrace(options, async ({ signal, err }) => {
    if (err) app.log.fatal({ err }, 'closing after a failure')
    else app.log.info({ signal }, 'closing')
    app.state.draining = true
    closeConnections(app)
    if (signal === 'SIGTERM') await sleep(config.SHUTDOWN_DELAY_MS)
    await closeServer(app, isExpectingRequest)
    await close()
  })
}

/** Longest time of a shutdown, in ms: the delay, then one second more than a request may wait for the database. */
export function shutdownMs(config: Config): number {
  return config.SHUTDOWN_DELAY_MS + 2 * config.STATEMENT_TIMEOUT_MS + 2_000
}

/** Time that a new connection has for its first request, in ms, before a shutdown closes it. */
const FIRST_REQUEST_MS = 1_000

/** Sends `Connection: close` with each response, so that the client's next request goes elsewhere. */
function closeConnections(app: FastifyInstance): void {
  app.server.prependListener('request', (_request, response) => {
    response.shouldKeepAlive = false
  })
}

/**
 * Closes all connections when no response is in flight, and the first request of a new connection is not
 * on its way. Node.js considers a connection idle after the last write() of a response, even while bytes
 * wait for a slow client. This function therefore replaces its closeIdleConnections(). Until then, each
 * response closes its own connection, see closeConnections().
 */
async function closeServer(app: FastifyInstance, isExpectingRequest: () => boolean): Promise<void> {
  app.server.closeIdleConnections = () => {
    if (app.state.requests === 0 && !isExpectingRequest()) app.server.closeAllConnections()
  }
  const sweep = setInterval(() => app.server.closeIdleConnections(), 50)
  await app.close().finally(() => clearInterval(sweep))
}
