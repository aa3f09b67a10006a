import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { FastifyBaseLogger, FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { collectDefaultMetrics, Registry } from 'prom-client'
import { type Config, ConfigurationError } from '../config.ts'
import type { Limits } from '../limits/context.ts'
import type { Database, Instrumentation } from '../postgres/database.ts'
import { databaseMetrics, readDurations } from './database-metrics.ts'
import { httpMetrics } from './http-metrics.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Registry for the metrics of other plugins. Undefined without METRICS_PORT. */
    metrics: Registry | undefined
  }
}

export interface MetricSources {
  db: Database
  limits: Limits
  /** Returns the number of log lines that could not be written. */
  droppedLogLines: () => number
}

interface Metrics {
  registry: Registry
  /** Records the duration of each database read. */
  recordRead: Instrumentation
  plugin: (app: FastifyInstance, sources: MetricSources) => Promise<void>
}

/** Collects metrics of requests, databases and process, and serves them for Prometheus. */
export function createMetrics(config: Config): Metrics {
  const registry = new Registry()
  const plugin = async (app: FastifyInstance, sources: MetricSources) => {
    collectDefaultMetrics({ register: registry })
    httpMetrics(app, registry, sources.droppedLogLines)
    databaseMetrics(registry, sources)
    const server = metricsServer(config, app.log, () => registry.metrics())
    app.addHook('onReady', server.listen)
    app.addHook('onClose', server.close)
  }
  return { registry, recordRead: readDurations(registry), plugin: fp(plugin) }
}

/**
 * Server of GET /metrics on a separate port without authentication, which clients must not reach.
 * listen() throws ConfigurationError if the port cannot be opened.
 * @param read returns the metrics, in the text format of Prometheus
 */
export function metricsServer(
  { METRICS_HOST: host, METRICS_PORT: port }: Config,
  log: Pick<FastifyBaseLogger, 'info' | 'error'>,
  read: () => Promise<string>,
) {
  const server = createServer({ requestTimeout: 5_000 }, (request, response) => {
    respond(read, request, response).catch((err) => {
      log.error({ err }, 'metrics could not be served')
      response.writeHead(500).end()
    })
  })
  return {
    listen: async () => {
      await once(server.listen(port, host), 'listening').catch((error) => {
        throw new ConfigurationError(`METRICS_PORT ${port} cannot be opened: ${error.message}`)
      })
      const address = server.address() as AddressInfo
      log.info({ host: address.address, port: address.port }, 'metrics are served at /metrics')
    },
    close: async () => {
      if (!server.listening) return
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function respond(
  read: () => Promise<string>,
  { method, url }: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (method !== 'GET' || url?.split('?', 1)[0] !== '/metrics') {
    response.writeHead(404).end()
    return
  }
  const text = await read()
  response.writeHead(200, { 'content-type': Registry.PROMETHEUS_CONTENT_TYPE }).end(text)
}
