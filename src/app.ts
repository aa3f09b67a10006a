import fastify, { type FastifyInstance, type FastifyServerOptions, LogController } from 'fastify'
import type { Config } from './config.ts'
import { isTracing } from './config-tracing.ts'
import type { Database } from './database/database.ts'
import { watchReads } from './database/watched.ts'
import { accessLog } from './plugins/access-log.ts'
import { authentication } from './plugins/authentication.ts'
import { compression } from './plugins/compression.ts'
import { docsPage } from './plugins/docs-page.ts'
import { headRequests } from './plugins/head-requests.ts'
import { httpLimits } from './plugins/http-limits.ts'
import { configuredProvider } from './plugins/identity-provider.ts'
import { discreet } from './plugins/log-serializers.ts'
import { configuredRegistry, metrics } from './plugins/metrics/metrics.ts'
import { readDurations } from './plugins/metrics/read-durations.ts'
import { nodeAnswers } from './plugins/node-answers.ts'
import { openapi } from './plugins/openapi.ts'
import { otherMethods } from './plugins/other-methods.ts'
import { overload, underWay } from './plugins/overload.ts'
import { problems } from './plugins/problems.ts'
import { configuredQuota } from './plugins/quota.ts'
import { requestEnd } from './plugins/request-end.ts'
import { newRequestId, requestIdentity } from './plugins/request-identity.ts'
import { securityHeaders } from './plugins/security-headers.ts'
import { refuseAddress, refuseConnection } from './plugins/unreadable.ts'
import { accountTransactions } from './routes/account-transactions.ts'
import { assetsTransferOrders } from './routes/assets-transfer-orders.ts'
import type { RouteOptions } from './routes/connection-request.ts'
import { health } from './routes/health.ts'
import { portfolioTransactions } from './routes/portfolio-transactions.ts'
import { components } from './schemas/components.ts'

export interface AppOptions {
  config: Config
  db: Database
  logger?: FastifyServerOptions['logger']
}

/** The application: what holds for every route, then the routes. It listens to nothing yet. */
export async function buildApp({
  config,
  db: database,
  logger = false,
}: AppOptions): Promise<FastifyInstance> {
  const app = fastify({
    logger: discreet(logger),
    genReqId: newRequestId,
    requestIdHeader: false,
    // Fastify's own lines print the address, and with it the connection's token.
    logController: new LogController({
      disableRequestLogging: true,
      requestIdLogLabel: 'requestId',
    }),
    frameworkErrors: refuseAddress,
    clientErrorHandler: refuseConnection,
    ...httpLimits(config),
    ajv: {
      customOptions: {
        allErrors: true,
        coerceTypes: false,
        removeAdditional: false,
        allowUnionTypes: true,
        formats: { decimal: true },
      },
    },
  })
  app.server.maxConnections = config.MAX_SOCKETS
  app.decorate('draining', false)
  for (const component of components) app.addSchema(component)
  const registry = configuredRegistry(config)
  const traces = isTracing(config) ? await import('./plugins/tracing/tracing.ts') : undefined
  const db = watchReads(database, [
    ...(registry ? [readDurations(registry)] : []),
    ...(traces ? [traces.traceReads] : []),
  ])

  await app.register(underWay)
  await app.register(problems)
  await app.register(requestIdentity)
  await app.register(securityHeaders)
  await app.register(requestEnd)
  await app.register(accessLog)
  await app.register(metrics, { config, db, registry })
  if (traces) await app.register(traces.tracing, { config })
  await app.register(compression)
  await app.register(otherMethods)
  await app.register(headRequests)
  await app.register(nodeAnswers)
  await app.register(openapi)
  await app.register(docsPage)
  await app.register(health, { prefix: '/health', db })
  await app.register(api, { prefix: '/api/v1/queries', db, config })
  return app
}

async function api(app: FastifyInstance, { db, config }: Pick<AppOptions, 'db' | 'config'>) {
  await app.register(overload, { config })
  await app.register(authentication, { verify: configuredProvider(config, app) })
  const quota = await configuredQuota(app, { db, config })
  const options: RouteOptions = { db, maximumLimit: config.MAX_LIMIT, quota }
  await app.register(portfolioTransactions, options)
  await app.register(accountTransactions, options)
  await app.register(assetsTransferOrders, options)
}
