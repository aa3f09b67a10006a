import type { FastifyInstance } from 'fastify'
import { buildApp } from './app.ts'
import { type Config, readConfig, settingWarnings } from './config.ts'
import { readEnvFile, readSecretFiles, withoutEmbedded } from './env-file.ts'
import { logDestination } from './http/log.ts'
import { MAX_SOCKETS, socketLimit } from './http/sockets.ts'
import { Limits } from './limits/limits.ts'
import { OperatorError } from './operator-error.ts'
import { Database, type DatabaseOptions } from './postgres/database.ts'
import { hasState, SqlState } from './postgres/failures.ts'
import { readServer } from './postgres/readiness.ts'
import { openSecrets, type SecretFiles } from './secrets.ts'
import { closeOnSignal } from './shutdown.ts'

/** Starts the service. Without DATABASE_URL, also starts an embedded database. @throws OperatorError, system error */
export async function start(): Promise<void> {
  const { env } = process
  const envWarnings = readEnvFile(env)
  readSecretFiles(env)
  const config = readConfig(env)
  const demo = config.DATABASE_URL === undefined ? await startDemo(config.DATA_DIR) : undefined
  config.DATABASE_URL ??= demo?.url
  config.DEMO_TOKENS ??= demo?.DEMO_TOKENS
  const { DATABASE_URL: url = '' } = config

  const secrets = openSecrets(env, config)
  const readable = process.stdout.isTTY
    ? await import('../tools/readable-log.ts').catch(() => undefined)
    : undefined
  const stream = logDestination(readable?.readableLog())
  const db = new Database({
    ...databaseOptions(config, url),
    newestUrls: () => {
      const { DATABASE_URL = url, DATABASE_REPLICA_URL: replicaUrl } = secrets.newest()
      return { url: DATABASE_URL, replicaUrl }
    },
    onFailover: (server) => app.log.warn({ server }, 'the primary has changed'),
    onReplicaChange: (replica, reason) => {
      if (reason === undefined) app.log.info({ replica }, 'replica is used')
      else app.log.warn({ replica, reason }, 'replica is excluded')
    },
  })
  const logger = { level: config.LOG_LEVEL, stream }
  const limits = new Limits(config.MAX_REQUESTS, config.ANSWER_MEMORY_MB * 2 ** 20)
  const app = await buildApp({
    config,
    db,
    limits,
    droppedLogLines: stream.dropped,
    secrets,
    logger,
  })
  const maxSockets = socketLimit(config)
  app.server.maxConnections = maxSockets
  if (maxSockets < MAX_SOCKETS)
    app.log.warn({ maxSockets }, 'the limit of files allows fewer connections of clients')
  for (const warning of [...envWarnings, ...settingWarnings(env)]) app.log.warn(warning)
  process.on('SIGHUP', () => renewSecrets(app, secrets, db))
  closeOnSignal(app, config, async () => {
    await db.close()
    await demo?.stop()
    if (demo !== undefined) app.log.info(`stopped; the data stays in ${config.DATA_DIR}/`)
    await stream.end()
  })
  await checkSchema(app, db)
  const address = await listen(app, config)
  demo?.welcome(address)
}

/** Has new connections use the files of secrets. If they would fail, the open ones stay. */
async function renewSecrets(app: FastifyInstance, secrets: SecretFiles, db: Database) {
  try {
    await secrets.renew(() => db.renew())
    app.log.info('SIGHUP: new connections use the files of secrets; other settings need a restart')
  } catch (error) {
    const { message: reason } = error as Error
    app.log.warn({ reason }, 'SIGHUP: the open connections stay, because new ones would fail')
  }
}

/** @throws OperatorError if a port is in use: the first error of many newcomers */
async function listen(app: FastifyInstance, config: Config): Promise<string> {
  try {
    return await app.listen({ host: config.HOST, port: config.PORT })
  } catch (error) {
    const { code, port } = error as NodeJS.ErrnoException & { port?: number }
    if (code !== 'EADDRINUSE') throw error
    const name = port === config.METRICS_PORT ? 'METRICS_PORT' : 'PORT'
    throw new OperatorError(
      `Port ${port} is in use. Set ${name} to another one, or stop the program that uses it.`,
    )
  }
}

export function databaseOptions(config: Config, url: string): DatabaseOptions {
  return {
    url,
    size: config.DATABASE_POOL_SIZE,
    statementTimeoutMs: config.STATEMENT_TIMEOUT_MS,
    pooler: config.DATABASE_POOLER,
    replicaUrl: config.DATABASE_REPLICA_URL,
  }
}

async function startDemo(dataDir: string) {
  if (process.env.NODE_ENV === 'production')
    throw new OperatorError('DATABASE_URL must be set, because NODE_ENV is production.')
  const demo = await import('../tools/embedded-postgres/demo.ts').catch(withoutEmbedded)
  return await demo.startDemo(dataDir)
}

/** Checks the schema if the database responds. @throws OperatorError if it is outdated, or a right is missing */
async function checkSchema(app: FastifyInstance, db: Database): Promise<void> {
  try {
    const { missing, seesAllRows } = await readServer(db)
    if (missing.length > 0)
      throw new OperatorError(
        `The schema lacks ${missing.join(', ')}. Run \`operator migrate\` first.`,
      )
    if (seesAllRows)
      app.log.warn(
        'row-level security does not restrict this role: use a login of investment_service',
      )
  } catch (error) {
    const { message: reason, cause } = error as Error
    if (error instanceof OperatorError) throw error
    const facts = { reason, cause: (cause as Error | undefined)?.message }
    if (hasState(error, SqlState.denied))
      throw new OperatorError(
        `PostgreSQL denies the service a right that it needs (${facts.cause}). ` +
          'Run `operator migrate` as the owner of the database.',
      )
    app.log.warn(facts, 'started without the database: not ready yet')
  }
}
