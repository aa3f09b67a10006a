import fastify, { type FastifyInstance, LogController } from 'fastify'
import { type Config, isTracing } from './config.ts'
import { authentication } from './http/authentication.ts'
import { bufferCompression, compression } from './http/compression.ts'
import { docsPage } from './http/docs-page/docs-page.ts'
import { errorHandler } from './http/errors.ts'
import { newRequestId, requestIdentity, securityHeaders } from './http/headers.ts'
import { httpLimits } from './http/limits.ts'
import { malformedRequests, rejectConnection, rejectPath } from './http/malformed-requests.ts'
import { headRequests, methodNotAllowed } from './http/methods.ts'
import { openapi, openapiRoute } from './http/openapi/openapi.ts'
import { overload, requestLimit } from './http/overload.ts'
import { accessLog, type LoggerOptions, redactedLogger, requestEnd } from './http/request-log.ts'
import { type Database, type DatabaseOptions, instrumentReads } from './postgres/database.ts'
import type { Primary } from './primary.ts'
import { accountTransactions } from './routes/account-transactions.ts'
import type { RouteOptions } from './routes/connection-request.ts'
import { exports } from './routes/export.ts'
import { health } from './routes/health.ts'
import { portfolioTransactions } from './routes/portfolio-transactions.ts'
import { transferOrders } from './routes/transfer-orders.ts'
import { components } from './schemas/components.ts'

export interface AppOptions {
  config: Config
  db: Database
  logger: LoggerOptions
  /** Process that has started this worker. */
  primary?: Primary | undefined
}

/** Registers the plugins, then the routes. Does not listen. */
export async function buildApp({
  config,
  db: database,
  logger,
  primary,
}: AppOptions): Promise<FastifyInstance> {
  const inFlight = { requests: 0 }
  const app = fastify({
    logger: redactedLogger(logger),
    genReqId: newRequestId,
    requestIdHeader: false,
    // Fastify's own log lines contain the path, and so the connection token.
    logController: new LogController({
      disableRequestLogging: true,
      requestIdLogLabel: 'requestId',
    }),
    frameworkErrors: rejectPath,
    clientErrorHandler: rejectConnection,
    // The routes describe the errors. The default message lists all of them.
    schemaErrorFormatter: () => new Error('invalid parameters'),
    ...httpLimits(config, inFlight),
    ajv: {
      customOptions: {
        allErrors: true,
        coerceTypes: false,
        removeAdditional: false,
        allowUnionTypes: true,
        formats: { decimal: true },
        // Each app would compile the schema of schemas. The types of TypeBox allow no wrong schema.
        meta: false,
        validateSchema: false,
      },
    },
  })
  app.decorate('inFlight', inFlight)
  app.decorate('draining', false)
  for (const component of components) app.addSchema(component)
  // Routes with a schema send text or bytes. Unused serializers took two thirds of buildApp().
  app.setSerializerCompiler(() => JSON.stringify)
  const telemetry =
    config.METRICS_PORT === undefined ? undefined : await import('./telemetry/metrics.ts')
  const metrics = telemetry?.createMetrics(config, primary)
  app.decorate('metrics', metrics?.registry)
  const tracing = isTracing(config) ? await import('./telemetry/tracing.ts') : undefined
  const traces = tracing?.startTracing(app, config)
  const db = instrumentReads(database, [
    ...(metrics ? [metrics.recordRead] : []),
    ...(traces ? [traces.traceRead] : []),
  ])

  await app.register(errorHandler)
  await app.register(requestIdentity)
  await app.register(securityHeaders)
  await app.register(requestEnd)
  await app.register(accessLog)
  if (metrics) await app.register(metrics.plugin, { db })
  if (traces) await app.register(traces.plugin)
  await app.register(compression)
  await app.register(malformedRequests)
  await app.register(methodNotAllowed)
  await app.register(headRequests)
  await app.register(openapi, { config })
  await app.register(documentation, { config })
  await app.register(health, { prefix: '/health', db })
  await app.register(api, { prefix: '/api/v1/queries', db, config, primary })
  return app
}

/** Requests in flight for the OpenAPI document and its page. MAX_REQUESTS does not count them. */
const MAX_DOCUMENT_REQUESTS = 50

async function documentation(app: FastifyInstance, { config }: Pick<AppOptions, 'config'>) {
  await app.register(requestLimit, { maximum: MAX_DOCUMENT_REQUESTS })
  await app.register(openapiRoute)
  if (config.DOCS_PAGE) await app.register(docsPage, { config })
}

async function api(app: FastifyInstance, { db, config, primary }: Omit<AppOptions, 'logger'>) {
  await app.register(overload, { config })
  const identity =
    config.AUTH_ISSUER === undefined ? undefined : await import('./http/identity-provider.ts')
  const verify = identity?.configuredProvider(config, app)
  await app.register(authentication, { db, config, verify })
  await app.register(bufferCompression)
  const quotas = config.RATE_LIMIT_PER_MINUTE > 0 ? await import('./http/quota.ts') : undefined
  const quota = await quotas?.openQuota(app, config, primary)
  const options: RouteOptions = { db, maximumLimit: config.MAX_LIMIT, quota }
  await app.register(portfolioTransactions, options)
  await app.register(accountTransactions, options)
  await app.register(transferOrders, options)
  await app.register(exports, options)
}

/** Settings of the database at `url`. */
export function databaseOptions(config: Config, url: string): DatabaseOptions {
  return {
    url,
    size: config.DATABASE_POOL_SIZE,
    waitMs: config.DATABASE_WAIT_MS,
    statementTimeoutMs: config.STATEMENT_TIMEOUT_MS,
    pooler: config.DATABASE_POOLER,
    prepare: config.DATABASE_PREPARE,
    genericPlans: config.DATABASE_GENERIC_PLANS,
    queue: config.DATABASE_QUEUE,
    responseBytes: config.ANSWER_MEMORY_MB * 2 ** 20,
    replicaUrl: config.DATABASE_REPLICA_URL,
    replicaMaxLagMs: config.REPLICA_MAX_LAG_MS,
  }
}
