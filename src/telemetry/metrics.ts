import type { AddressInfo } from 'node:net'
import fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyPluginAsync,
} from 'fastify'
import fp from 'fastify-plugin'
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import type { Config } from '../config.ts'
import { sendError } from '../http/error-handler.ts'
import type { Limits } from '../limits/context.ts'
import { OperatorError } from '../operator-error.ts'
import type { Database } from '../postgres/database.ts'
import { ProblemError } from '../schemas/problem.ts'
import { databaseMetrics } from './database-metrics.ts'
import { httpMetrics } from './http-metrics.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** Registry for the metrics of other plugins. Undefined without METRICS_PORT. */
    metrics?: Registry
  }
}

export interface MetricSources {
  config: Config
  db: Database
  limits: Limits
  droppedLogLines: () => number
  healthChecks: FastifyPluginAsync
}

/** Collects metrics of requests, databases and process, and serves them for Prometheus. */
export const metrics = fp(async (app: FastifyInstance, sources: MetricSources) => {
  const { config, droppedLogLines, healthChecks } = sources
  const registry = new Registry()
  app.decorate('metrics', registry)
  collectDefaultMetrics({ register: registry })
  httpMetrics(app, registry, droppedLogLines)
  if (config.INSTANCES !== undefined) {
    const help = 'Number of instances that should run (INSTANCES).'
    new Gauge({ name: 'instances_expected', help, registers: [registry] }).set(config.INSTANCES)
  }
  const readDatabase = databaseMetrics(registry, sources)
  const server = metricsServer(app.log, async () => {
    await readDatabase()
    return registry.metrics()
  })
  await server.register(healthChecks, { prefix: '/health' })
  app.addHook('onReady', () => listen(server, config, app.log))
  app.addHook('onClose', () => server.close())
})

/**
 * Server of GET /metrics and of the health checks, on a separate port without authentication, which clients must
 * not reach. It has its own queue of new connections, so health checks do not wait behind clients.
 */
function metricsServer(log: FastifyBaseLogger, read: () => Promise<string>): FastifyInstance {
  const server = fastify({ requestTimeout: 5_000, forceCloseConnections: true })
  server.setErrorHandler((err, request, reply) => {
    if (err instanceof ProblemError) return sendError(request, reply, err)
    log.error({ err }, 'metrics could not be served')
    return reply.code(500).send()
  })
  server.get('/metrics', async (_request, reply) =>
    reply.type(Registry.PROMETHEUS_CONTENT_TYPE).send(await read()),
  )
  return server
}

/** @throws OperatorError if the port cannot be opened */
async function listen(
  server: FastifyInstance,
  { METRICS_HOST: host, METRICS_PORT: port = 0 }: Config,
  log: FastifyBaseLogger,
): Promise<void> {
  await server.listen({ host, port }).catch((error) => {
    throw new OperatorError(`METRICS_PORT ${port} cannot be opened: ${error.message}`)
  })
  const { address, port: opened } = server.server.address() as AddressInfo
  log.info({ host: address, port: opened }, 'metrics are served at /metrics')
}
