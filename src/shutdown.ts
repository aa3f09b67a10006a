import { setTimeout as sleep } from 'node:timers/promises'
import closeWithGrace from 'close-with-grace'
import type { FastifyInstance } from 'fastify'
import type { Config } from './config.ts'

/**
 * Handles SIGTERM and Ctrl-C. After SIGTERM, the service is not ready for SHUTDOWN_DELAY_MS but accepts
 * requests, so that load balancers notice. Ctrl-C skips this delay. Requests in flight then have
 * SHUTDOWN_GRACE_MS to finish (exit code 0). A second signal or a timeout ends the process with exit
 * code 1, because a response is incomplete.
 * @param close called when no request is left
 */
export function closeOnSignal(
  app: FastifyInstance,
  config: Config,
  close: () => Promise<void>,
): void {
  const delay = config.SHUTDOWN_DELAY_MS + config.SHUTDOWN_GRACE_MS
  closeWithGrace({ delay, logger: app.log }, async ({ signal, err }) => {
    if (err) app.log.fatal({ err }, 'closing after a failure')
    else app.log.info({ signal }, 'closing')
    drain(app)
    if (signal === 'SIGTERM') await sleep(config.SHUTDOWN_DELAY_MS)
    await closeServer(app)
    await close()
  })
}

/** Sends `Connection: close` with each response, so that the client's next request goes elsewhere. */
function drain(app: FastifyInstance): void {
  app.draining = true
  app.server.prependListener('request', (_request, response) => {
    response.shouldKeepAlive = false
  })
}

/**
 * Closes all connections when no response is in flight. Node.js considers a connection idle after the
 * last write() of a response, even while bytes wait for a slow client. This function therefore replaces
 * its closeIdleConnections(). Until then, each response closes its own connection, see drain().
 */
async function closeServer(app: FastifyInstance): Promise<void> {
  app.server.closeIdleConnections = () => {
    if (app.inFlight.requests === 0) app.server.closeAllConnections()
  }
  const sweep = setInterval(() => app.server.closeIdleConnections(), 50)
  await app.close().finally(() => clearInterval(sweep))
}
