import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { collectDefaultMetrics, Registry } from 'prom-client'
import { type Config, ConfigurationError } from '../config.ts'
import type { Database } from '../postgres/database.ts'
import { databaseMetrics } from './database-metrics.ts'
import { httpMetrics } from './http-metrics.ts'

/**
 * Serves the metrics on a port of their own, which is not for clients: at /metrics, to whoever asks.
 * It opens before the service listens, and closes with it.
 * @throws ConfigurationError when the port is taken
 */
function serveMetrics(app: FastifyInstance, registry: Registry, config: Config): void {
  const server = createServer({ requestTimeout: 5_000 }, (request, response) => {
    answer(registry, request, response).catch((err) => {
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

async function answer(
  registry: Registry,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (request.method !== 'GET' || request.url?.split('?', 1)[0] !== '/metrics') {
    response.writeHead(404).end()
    return
  }
  const text = await registry.metrics()
  response.writeHead(200, { 'content-type': registry.contentType }).end(text)
}

declare module 'fastify' {
  interface FastifyInstance {
    /** Where a plugin can add metrics of its own; undefined while nobody is to see any. */
    metrics: Registry | undefined
  }
}

interface Options {
  config: Config
  db: Database
  registry: Registry | undefined
}

/** The registry of the metrics, where the settings ask for them. */
export function configuredRegistry(config: Config): Registry | undefined {
  return config.METRICS_PORT === undefined ? undefined : new Registry()
}

/** What Prometheus can know of the service: requests, databases, event loop, memory, process. */
export const metrics = fp(async (app: FastifyInstance, { config, db, registry }: Options) => {
  app.decorate('metrics', registry)
  if (registry === undefined) return
  collectDefaultMetrics({ register: registry })
  httpMetrics(app, registry)
  databaseMetrics(registry, db)
  serveMetrics(app, registry, config)
})
