import { randomUUID } from 'node:crypto'
import fastify, { type FastifyInstance, LogController } from 'fastify'
import type { Config } from './config.ts'
import { authentication } from './http/authentication.ts'
import { compression } from './http/compression.ts'
import { delays } from './http/delays.ts'
import { docsPage } from './http/docs-page/docs-page.ts'
import { errorReplier } from './http/error-handler.ts'
import { headRequests } from './http/head-requests.ts'
import { httpOptions } from './http/http-server.ts'
import { accessLog, type LoggerOptions, serializers } from './http/log.ts'
import {
  rejectConnect,
  rejectMalformed,
  rejectPath,
  rejectUnparsable,
} from './http/malformed-requests.ts'
import { openapi } from './http/openapi/openapi.ts'
import { requestContext, type ServiceState } from './http/request-context.ts'
import { shareSockets } from './http/sockets.ts'
import { Bag } from './limits/bag.ts'
import type { Limits } from './limits/limits.ts'
import type { Database } from './postgres/database.ts'
import { checkOf } from './postgres/readiness.ts'
import { listProbes } from './queries/probes.ts'
import { health } from './routes/health.ts'
import type { RouteOptions } from './routes/list.ts'
import { lists } from './routes/lists.ts'
import { components } from './schemas/lists.ts'
import { problem, routeNotFoundDetail } from './schemas/problem.ts'
import type { SecretFiles } from './secrets.ts'

/** Path of all lists. */
const API_PATH = '/api/v1/queries'

export interface AppOptions {
  config: Config
  db: Database
  limits: Limits
  droppedLogLines: () => number
  secrets: Pick<SecretFiles, 'newest' | 'failed'>
  logger: LoggerOptions
}

export async function buildApp(options: AppOptions): Promise<FastifyInstance> {
  const { config, db, limits, logger, secrets } = options
  const state: ServiceState = { open: new Bag(), draining: false }
  const replyWithError = errorReplier({ limits, state, hasDocs: config.DOCS_PAGE })
  const app = fastify({
    logger: { ...logger, serializers },
    // Ids that clients send may not be unique.
    genReqId: randomUUID as () => string,
    // Fastify's own log lines contain the path, and so the connection token.
    logController: new LogController({
      disableRequestLogging: true,
      requestIdLogLabel: 'requestId',
    }),
    frameworkErrors: rejectPath(replyWithError),
    clientErrorHandler: rejectUnparsable(limits, state),
    // A plugin may need more than Fastify's ten seconds on a machine that is busy, for example after a power failure.
    pluginTimeout: 0,
    ...httpOptions(config),
  })
  // Bodies are texts and buffers. To compile a serializer for each response would only make the start slower.
  app.setSerializerCompiler(() => JSON.stringify)
  app.decorate('state', state)
  for (const component of components) app.addSchema(component)
  const methods = config.AUTH_ISSUER ? (['tokenHash', 'clientId'] as const) : ['tokenHash' as const]
  const check = checkOf(db, listProbes(lists, methods), (list, cause) => {
    if (cause === undefined) app.log.info({ list }, 'the list can be read again')
    else app.log.warn({ list, cause }, 'the list cannot be read')
  })
  const healthChecks = health(db, check, state, app.log)

  rejectConnect(app, limits)
  shareSockets(app.server, limits)
  app.setErrorHandler(replyWithError)
  const paths = lists.map(({ url }) => `${API_PATH}${url.replace(':token', '{token}')}`)
  const detail = routeNotFoundDetail(paths)
  app.setNotFoundHandler(() => {
    throw problem('route_not_found', { detail })
  })
  await app.register(requestContext, { limits })
  app.addHook('onRequest', rejectMalformed)
  await app.register(accessLog, { limits, trustsProxies: config.TRUSTED_PROXIES !== undefined })
  if (config.METRICS_PORT !== undefined)
    await app.register(import('./telemetry/metrics.ts'), { ...options, check, healthChecks })
  if (config.OTEL_EXPORTER_OTLP_ENDPOINT !== undefined)
    await app.register(import('./telemetry/tracing.ts'), options)
  await app.register(delays, { limits })
  await app.register(compression)
  await app.register(headRequests)
  await app.register(openapi, { config })
  if (config.DOCS_PAGE) await app.register(docsPage, { config })
  await app.register(healthChecks, { prefix: '/health' })
  await app.register(api, { prefix: API_PATH, db, config, limits, secrets })
  return app
}

async function api(
  app: FastifyInstance,
  {
    db,
    config,
    limits: { tenants },
    secrets,
  }: Pick<AppOptions, 'db' | 'config' | 'limits' | 'secrets'>,
) {
  const identity = config.AUTH_ISSUER ? await import('./http/identity-provider.ts') : undefined
  const verify = identity?.identityProvider(config, app)
  await app.register(authentication, { verify, tenants })
  const quotas = config.RATE_LIMIT_PER_MINUTE > 0 ? await import('./http/quota.ts') : undefined
  const quota = await quotas?.openQuota(app, config, secrets)
  const options: RouteOptions = { db, maximumLimit: config.MAX_LIMIT, quota }
  for (const { route } of lists) await app.register(route, options)
}
