import { setTimeout as sleep } from 'node:timers/promises'
import closeWithGrace from 'close-with-grace'
import type { FastifyInstance } from 'fastify'
import type { Config } from './config.ts'

/**
 * Closes the service on a signal. After SIGTERM, it accepts requests for SHUTDOWN_DELAY_MS, so that load balancers
 * notice. A second signal or a timeout ends the process with exit code 1, because a response is incomplete.
 */
export function closeOnSignal(
  app: FastifyInstance,
  config: Config,
  close: () => Promise<void>,
): void {
  // A reset shows that a response is cut. Over HTTP/1.0, the end of the connection would be the end of the body.
  process.on('exit', () => {
    for (const socket of app.state.open) socket.resetAndDestroy()
  })
  let acceptedAt = Number.NEGATIVE_INFINITY
  app.server.on('connection', () => {
    acceptedAt = performance.now()
  })
  // A new connection has a second for its first request.
  const isInUse = () => app.state.open.size > 0 || performance.now() - acceptedAt < 1_000
  const options = { delay: shutdownMs(config), logger: app.log, skip: ['SIGHUP' as const] }
  closeWithGrace(options, async ({ signal, err }) => {
    if (err) app.log.fatal({ err }, 'closing after a failure')
    else app.log.info({ signal }, 'closing')
    app.state.draining = true
    // Sends `Connection: close`, so that the next request of the client goes elsewhere.
    app.server.prependListener('request', (_request, response) => {
      response.shouldKeepAlive = false
    })
    if (signal === 'SIGTERM') await sleep(config.SHUTDOWN_DELAY_MS)
    // Node.js considers a connection idle after the last write() of a response, even while bytes wait for a slow client.
    app.server.closeIdleConnections = () => {}
    const closed = app.close()
    while (isInUse()) await sleep(50)
    app.server.closeAllConnections()
    await closed
    await close()
  })
}

/** Longest time of a shutdown, in ms: the delay, then one second more than a request may wait for the database. */
export function shutdownMs(config: Config): number {
  return config.SHUTDOWN_DELAY_MS + 2 * config.STATEMENT_TIMEOUT_MS + 2_000
}
