import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { collectDefaultMetrics, Registry } from 'prom-client'
import type { Config } from '../../config.ts'
import type { Database } from '../../database/database.ts'
import { databaseMetrics } from './database-metrics.ts'
import { httpMetrics } from './http-metrics.ts'
import { serveMetrics } from './metrics-port.ts'

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
