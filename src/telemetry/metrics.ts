import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { collectDefaultMetrics, type Registry } from 'prom-client'
import { type Config, ConfigurationError } from '../config.ts'
import type { Database } from '../postgres/database.ts'
import { databaseMetrics } from './database-metrics.ts'
import { httpMetrics } from './http-metrics.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Registry for the metrics of other plugins. Undefined without METRICS_PORT. */
    metrics: Registry | undefined
  }
}

interface MetricsOptions {
  config: Config
  db: Database
  registry: Registry | undefined
}

/** Collects metrics of requests, databases and process, and serves them for Prometheus. */
export const metrics = fp(
  async (app: FastifyInstance, { config, db, registry }: MetricsOptions) => {
    app.decorate('metrics', registry)
    if (registry === undefined) return
    collectDefaultMetrics({ register: registry })
    httpMetrics(app, registry)
    databaseMetrics(registry, db)
    serveMetrics(app, registry, config)
  },
)

/**
 * Serves GET /metrics on a separate port without authentication, which clients must not reach.
 * @throws ConfigurationError from app.ready() if the port cannot be opened
 */
function serveMetrics(app: FastifyInstance, registry: Registry, config: Config): void {
  const server = createServer({ requestTimeout: 5_000 }, (request, response) => {
    respond(registry, request, response).catch((err) => {
      app.log.error({ err }, 'metrics could not be served')
      response.writeHead(500).end()
    })
  })
  app.addHook('onReady', async () => {
    const { METRICS_HOST: host, METRICS_PORT: port } = config
    await once(server.listen(port, host), 'listening').catch((error) => {
      throw new ConfigurationError(`METRICS_PORT ${port} cannot be opened: ${error.message}`)
    })
    const address = server.address() as AddressInfo
    app.log.info({ host: address.address, port: address.port }, 'metrics are served at /metrics')
  })
  app.addHook('onClose', async () => {
    if (!server.listening) return
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
}

async function respond(
  registry: Registry,
  { method, url }: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (method !== 'GET' || url?.split('?', 1)[0] !== '/metrics') {
    response.writeHead(404).end()
    return
  }
  const text = await registry.metrics()
  response.writeHead(200, { 'content-type': registry.contentType }).end(text)
}
