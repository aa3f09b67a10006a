import type { FastifyInstance } from 'fastify'
import { buildApp, databaseOptions } from './app.ts'
import { type Config, readConfig, settingWarnings } from './config.ts'
import { ConfigurationError, readEnvFile, readSecretFiles, withoutEmbedded } from './env-file.ts'
import { MAX_SOCKETS, socketLimit } from './http/limits.ts'
import { type LogDestination, logDestination } from './http/request-log.ts'
import { OperatorError } from './operator-error.ts'
import { type Database, openDatabase } from './postgres/database.ts'
import { missingMigrations, RightDenied } from './postgres/migrations.ts'
import { seesAllRows } from './postgres/readiness.ts'
import { namesSameDatabases } from './postgres/server-urls.ts'
import { closeOnSignal } from './shutdown.ts'

/** Starts the service: the database of development if no other is set, then the application. */
async function start(config: Config, readSecrets: () => void): Promise<void> {
  if (config.DATABASE_URL === undefined && process.env.NODE_ENV === 'production') {
    const reason = 'with NODE_ENV=production, no embedded PostgreSQL starts.'
    throw new ConfigurationError(`DATABASE_URL must be set: ${reason}`)
  }
  const development =
    config.DATABASE_URL === undefined
      ? await import('../tools/embedded-postgres/demo.ts').catch(withoutEmbedded)
      : undefined
  const demo = await development?.startDemo(config.DATA_DIR)
  void demo?.killed.then((sentence) => {
    process.stderr.write(`${sentence}\n`)
    process.exit(1)
  })
  const stream = logDestination(await terminalFormat())
  const located = {
    ...development?.DEMO_SETTINGS,
    ...config,
    DATABASE_URL: config.DATABASE_URL ?? demo?.url ?? '',
  }
  const stop = async () => demo?.stop()
  const renew = () => {
    readSecrets()
    const newer = readConfig(process.env)
    for (const name of ['DATABASE_URL', 'DATABASE_REPLICA_URL'] as const) {
      if (newer[name] && !namesSameDatabases(newer[name], located[name]))
        throw new ConfigurationError(`${name} names another server or database: restart.`)
    }
    Object.assign(located, newer)
  }
  const address = await serve(located, renew, stream, stop)
  // Standard output has only the log.
  if (development) process.stderr.write(development.welcome(address))
}

async function terminalFormat() {
  if (!process.stdout.isTTY || process.env.NODE_ENV === 'production') return undefined
  const module = await import('../tools/readable-log.ts').catch(() => undefined)
  return module?.readableLog()
}

type LocatedConfig = Config & { DATABASE_URL: string }

/**
 * Opens the database and the application, then listens.
 * @param renew reads the files of secrets again, and changes the settings
 * @param stop called when no request is left
 * @returns the address on which it listens
 */
async function serve(
  config: LocatedConfig,
  renew: () => void,
  stream: LogDestination,
  stop: () => Promise<void>,
): Promise<string> {
  const newestUrls = (rejected: boolean) => {
    try {
      if (rejected) renew()
    } catch {
      // The last ones stay in use. SIGHUP reports the error.
    }
    return { url: config.DATABASE_URL, replicaUrl: config.DATABASE_REPLICA_URL }
  }
  const db = openDatabase({ ...databaseOptions(config, config.DATABASE_URL), newestUrls })
  const app = await buildApp({
    config,
    db,
    droppedLogLines: stream.dropped,
    logger: { level: config.LOG_LEVEL, stream },
  })
  const maxSockets = socketLimit(config)
  app.server.maxConnections = maxSockets
  if (maxSockets < MAX_SOCKETS) {
    app.log.warn({ maxSockets }, 'the limit of files allows fewer connections of clients')
  }
  for (const warning of settingWarnings(process.env)) app.log.warn(warning)
  stream.reportDrops(app.log)
  logServers(app, db)
  process.on('SIGHUP', () => renewSecrets(app, db, renew))
  const close = async () => {
    await db.close()
    await stop()
    await stream.end()
  }
  closeOnSignal(app, config, close)
  try {
    await checkSchema(app, db)
    return await app.listen({ host: config.HOST, port: config.PORT })
  } catch (error) {
    await app.close()
    await close()
    throw error
  }
}

function logServers(app: FastifyInstance, db: Database): void {
  db.onFailover((server) => app.log.warn({ server }, 'the primary has changed'))
  db.onReplicaChange(({ name, unusableReason: reason }) => {
    if (reason === undefined) app.log.info({ replica: name }, 'replica is used')
    else app.log.warn({ replica: name, reason }, 'replica is excluded')
  })
}

/** Reads the files of secrets and certificates again, and replaces the connections to PostgreSQL. */
async function renewSecrets(app: FastifyInstance, db: Database, renew: () => void): Promise<void> {
  try {
    renew()
    await db.renew()
    app.log.info('SIGHUP: new connections use the files of secrets; other settings need a restart')
  } catch (error) {
    const { message: reason } = error as Error
    app.log.warn({ reason }, 'SIGHUP: the open connections stay, because new ones would fail')
  }
}

const UNRESTRICTED =
  'row-level security does not restrict this role: use a login of investment_service'

/**
 * Checks the schema before the service listens. The operator must fix an outdated schema. If the
 * database is unreachable, the service starts and becomes ready when the database responds.
 * @throws OperatorError if the schema is outdated, or PostgreSQL denies the service a right
 */
async function checkSchema(app: FastifyInstance, db: Database): Promise<void> {
  const check = async () => {
    const missing = await missingMigrations(db)
    if (missing.length === 0 && (await seesAllRows(db))) app.log.warn(UNRESTRICTED)
    return missing
  }
  const missing = await check().catch((error: Error) => {
    if (error instanceof RightDenied) throw new OperatorError(error.message)
    const cause = error.cause instanceof Error ? error.cause.message : undefined
    app.log.warn({ reason: error.message, cause }, 'started without the database: not ready yet')
    return []
  })
  if (missing.length === 0) return
  throw new OperatorError(
    `The database schema is outdated. It lacks ${missing.join(', ')}. ` +
      'Run `npm run operator -- migrate` first.',
  )
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error instanceof OperatorError) return error.message
  return describeListenError(error) ?? String(error.stack)
}

function describeListenError(error: NodeJS.ErrnoException & { port?: number }): string | undefined {
  const { code, port, syscall } = error
  if (code === 'EADDRINUSE') return `Port ${port} is in use: set PORT to another one.`
  if (code === 'EADDRNOTAVAIL') return 'HOST is not an address of this machine: change HOST.'
  if (syscall === 'getaddrinfo') return 'HOST has no address: set it to one of this machine.'
  if (code === 'EACCES' && (syscall === 'listen' || syscall === 'bind')) {
    return `This user may not listen on port ${port}: set PORT to another one.`
  }
  return undefined
}

try {
  readEnvFile(process.env)
  const readSecrets = readSecretFiles(process.env)
  await start(readConfig(process.env), readSecrets)
} catch (error) {
  process.stderr.write(`${describe(error)}\n`)
  process.exit(1)
}
