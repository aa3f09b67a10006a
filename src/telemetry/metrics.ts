import fastify, { type FastifyInstance, type FastifyPluginAsync, LogController } from 'fastify'
import fp from 'fastify-plugin'
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import packageJson from '../../package.json' with { type: 'json' }
import type { Config } from '../config.ts'
import { sendError } from '../http/error-handler.ts'
import type { Limits } from '../limits/limits.ts'
import type { Database } from '../postgres/database.ts'
import type { Check } from '../postgres/readiness.ts'
import { ProblemError } from '../schemas/problem.ts'
import type { SecretFiles } from '../secrets.ts'
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
  check: () => Promise<Check>
  droppedLogLines: () => number
  secrets: Pick<SecretFiles, 'failed'>
  healthChecks: FastifyPluginAsync
}

/** Serves metrics and health checks on a port that clients must not reach. They do not wait behind clients there. */
export default fp(async (app: FastifyInstance, sources: MetricSources) => {
  const { config, droppedLogLines, healthChecks, secrets } = sources
  const registry = new Registry()
  app.decorate('metrics', registry)
  collectDefaultMetrics({ register: registry })
  httpMetrics(app, registry, droppedLogLines)
  if (config.INSTANCES !== undefined) {
    const help = 'Instances that should run. Only with INSTANCES.'
    new Gauge({ name: 'instances_expected', help, registers: [registry] }).set(config.INSTANCES)
  }
  new Gauge({
    name: 'service_info',
    help: 'Always 1: release and commit of the instance (COMMIT).',
    labelNames: ['release', 'commit'],
    registers: [registry],
  }).set({ release: packageJson.version, commit: config.COMMIT ?? '' }, 1)
  new Gauge({
    name: 'secrets_failed',
    help: '1 if the files of secrets could not be read, or if the last SIGHUP found that new connections fail.',
    registers: [registry],
    collect() {
      this.set(secrets.failed() ? 1 : 0)
    },
  })
  const readDatabase = databaseMetrics(app, registry, sources)
  const server = fastify({
    loggerInstance: app.log,
    logController: new LogController({ disableRequestLogging: true }),
    requestTimeout: 5_000,
    forceCloseConnections: true,
  })
  server.setErrorHandler((error, request, reply) => {
    if (error instanceof ProblemError) return sendError(request, reply, error)
    throw error
  })
  server.get('/metrics', async (_request, reply) => {
    await readDatabase()
    return reply.type(Registry.PROMETHEUS_CONTENT_TYPE).send(await registry.metrics())
  })
  await server.register(healthChecks, { prefix: '/health' })
  app.addHook('onReady', async () => {
    await server.listen({
      host: config.METRICS_HOST,
      port: config.METRICS_PORT ?? 0,
      listenTextResolver: (address) => `metrics are served at ${address}/metrics`,
    })
  })
  app.addHook('onClose', () => server.close())
})
