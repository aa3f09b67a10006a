import type { FastifyInstance } from 'fastify'
import { buildApp, databaseOptions } from './app.ts'
import { readConfig, settingWarnings } from './config.ts'
import { readEnvFile, readSecretFiles, withoutEmbedded } from './env-file.ts'
import { MAX_SOCKETS, socketLimit } from './http/limits.ts'
import { logDestination } from './http/log-destination.ts'
import { OperatorError } from './operator-error.ts'
import { type Database, openDatabase } from './postgres/database.ts'
import { missingMigrations, RightDenied } from './postgres/migrations.ts'
import { seesAllRows } from './postgres/readiness.ts'
import { namesSameDatabases } from './postgres/server-urls.ts'
import { closeOnSignal } from './shutdown.ts'

/**
 * Starts the service with the settings of the environment. If DATABASE_URL is not set, also starts the database of
 * development.
 * @throws OperatorError, or the error of a system call, if it cannot start
 */
export async function start(): Promise<void> {
  const { env } = process
  readEnvFile()
  readSecretFiles(env)
  const settings = readConfig(env)
  const demo = settings.DATABASE_URL === undefined ? await startDemo(settings.DATA_DIR) : undefined
  const url = settings.DATABASE_URL ?? demo?.url ?? ''
  const DEMO_TOKENS = settings.DEMO_TOKENS ?? demo?.DEMO_TOKENS
  const config = { ...settings, DATABASE_URL: url, DEMO_TOKENS }

  const readUrls = () => {
    readSecretFiles(env)
    const { DATABASE_URL = url, DATABASE_REPLICA_URL, REDIS_URL } = readConfig(env)
    if (!namesSameDatabases(DATABASE_URL, url))
      throw new OperatorError('DATABASE_URL names another server or database: restart.')
    if (!namesSameDatabases(DATABASE_REPLICA_URL, config.DATABASE_REPLICA_URL))
      throw new OperatorError('DATABASE_REPLICA_URL names another server or database: restart.')
    // quota.ts reads it after it has lost its connection.
    config.REDIS_URL = REDIS_URL
    return { url: DATABASE_URL, replicaUrl: DATABASE_REPLICA_URL }
  }
  let urls = readUrls()
  /** Each new connection reads the files of secrets again. The last ones stay in use if they cannot be used. */
  const newestUrls = () => {
    try {
      urls = readUrls()
    } catch {
      // SIGHUP reports the error.
    }
    return urls
  }

  const stream = logDestination(await terminalFormat())
  const db = openDatabase({
    ...databaseOptions(config, url),
    newestUrls,
    onFailover: (server) => app.log.warn({ server }, 'the primary has changed'),
    onReplicaChange: ({ name, unusableReason: reason }) => {
      if (reason === undefined) app.log.info({ replica: name }, 'replica is used')
      else app.log.warn({ replica: name, reason }, 'replica is excluded')
    },
  })
  const logger = { level: config.LOG_LEVEL, stream }
  const app = await buildApp({ config, db, droppedLogLines: stream.dropped, logger })
  const maxSockets = socketLimit(config)
  app.server.maxConnections = maxSockets
  if (maxSockets < MAX_SOCKETS)
    app.log.warn({ maxSockets }, 'the limit of files allows fewer connections of clients')
  for (const warning of settingWarnings(env)) app.log.warn(warning)
  process.on('SIGHUP', () => renewSecrets(app, db, readUrls))
  const close = async () => {
    await db.close()
    await demo?.stop()
    await stream.end()
  }
  closeOnSignal(app, config, close)
  try {
    await checkSchema(app, db)
    const address = await app.listen({ host: config.HOST, port: config.PORT })
    demo?.welcome(address)
  } catch (error) {
    await app.close()
    await close()
    throw error
  }
}

/** Starts the embedded PostgreSQL with the sample data. The process ends if PostgreSQL is killed. */
async function startDemo(dataDir: string) {
  if (process.env.NODE_ENV === 'production') {
    const reason = 'with NODE_ENV=production, no embedded PostgreSQL starts.'
    throw new OperatorError(`DATABASE_URL must be set: ${reason}`)
  }
  const embedded = await import('../tools/embedded-postgres/demo.ts').catch(withoutEmbedded)
  const demo = await embedded.startDemo(dataDir)
  // Standard output has only the log.
  const report = (text: string) => process.stderr.write(text)
  void demo.killed.then((sentence) => {
    report(`${sentence}\n`)
    process.exit(1)
  })
  const welcome = (address: string) => report(embedded.welcome(address))
  return { ...demo, ...embedded.DEMO_SETTINGS, welcome }
}

async function terminalFormat() {
  if (!process.stdout.isTTY || process.env.NODE_ENV === 'production') return undefined
  const module = await import('../tools/readable-log.ts').catch(() => undefined)
  return module?.readableLog()
}

/** Reads the files of secrets and certificates again, and replaces the connections to PostgreSQL. */
async function renewSecrets(app: FastifyInstance, db: Database, read: () => void): Promise<void> {
  try {
    read()
    await db.renew()
    app.log.info('SIGHUP: new connections use the files of secrets; other settings need a restart')
  } catch (error) {
    const { message: reason } = error as Error
    app.log.warn({ reason }, 'SIGHUP: the open connections stay, because new ones would fail')
  }
}

/**
 * Checks the schema before the service listens. If the database is unreachable, the service starts, and is ready when
 * the database responds.
 * @throws OperatorError if the schema is outdated, or PostgreSQL denies the service a right
 */
async function checkSchema(app: FastifyInstance, db: Database): Promise<void> {
  let missing: string[]
  try {
    missing = await missingMigrations(db)
    if (missing.length === 0 && (await seesAllRows(db)))
      app.log.warn(
        'row-level security does not restrict this role: use a login of investment_service',
      )
  } catch (error) {
    const { message: reason, cause } = error as Error
    if (error instanceof RightDenied) throw new OperatorError(reason)
    const { message } = cause instanceof Error ? cause : {}
    app.log.warn({ reason, cause: message }, 'started without the database: not ready yet')
    return
  }
  if (missing.length === 0) return
  throw new OperatorError(
    `The database schema is outdated. It lacks ${missing.join(', ')}. ` +
      'Run `npm run operator -- migrate` first.',
  )
}
