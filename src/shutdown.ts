import { setTimeout as sleep } from 'node:timers/promises'
import closeWithGrace from 'close-with-grace'
import type { FastifyInstance } from 'fastify'
import type { Config } from './config.ts'
import { OperatorError } from './operator-error.ts'
import type { Database, DatabaseOptions } from './postgres/database.ts'
import { missingMigrations } from './postgres/migrations.ts'

/** The settings of the database as src/database/ takes them, for the one at `url`. */
export function databaseOptions(config: Config, url: string): DatabaseOptions {
  return {
    url,
    size: config.DATABASE_POOL_SIZE,
    waitMs: config.DATABASE_WAIT_MS,
    statementTimeoutMs: config.STATEMENT_TIMEOUT_MS,
    pooler: config.DATABASE_POOLER,
    prepare: config.DATABASE_PREPARE,
    queue: config.DATABASE_QUEUE,
    answerBytes: config.ANSWER_MEMORY_MB * 2 ** 20,
    replicaUrl: config.DATABASE_REPLICA_URL,
    replicaMaxLagMs: config.REPLICA_MAX_LAG_MS,
  }
}

/**
 * Looks at the schema before the service listens. A schema that is behind is a mistake in the order of
 * a deployment, and waiting does not mend it. A database that does not answer comes back by itself, so
 * the service starts, is not ready, and answers as soon as the database does.
 * @throws OperatorError
 */
export async function checkSchema(app: FastifyInstance, db: Database): Promise<void> {
  const missing = await missingMigrations(db).catch((error: Error) => {
    const cause = error.cause instanceof Error ? error.cause.message : undefined
    app.log.warn({ reason: error.message, cause }, 'started without the database: not ready yet')
    return []
  })
  if (missing.length > 0) {
    throw new OperatorError(
      `The schema of the database is behind, it lacks ${missing.join(', ')}: ` +
        'run `npm run operator -- migrate` first.',
    )
  }
}

/** Logs which replicas are read from, and why not. */
export function logReplicas(app: FastifyInstance, db: Database): void {
  db.onReplicaChange(({ name, fault, lagMs }) => {
    if (fault === undefined) app.log.info({ replica: name, lagMs }, 'replica is read from')
    else app.log.warn({ replica: name, lagMs, reason: fault }, 'replica is left out')
  })
}

/**
 * On a signal: not ready any more, but still answering until the balancers have noticed; then nothing
 * new, and the end when all that was under way is answered, with exit code 0. A second signal, or too
 * long a wait, ends the process at once, with exit code 1: somebody did not get the whole of an answer.
 * Ctrl-C does not wait for balancers.
 * @param close what is to be closed when no request is left
 */
export function closeOnSignal(
  app: FastifyInstance,
  config: Config,
  close: () => Promise<void>,
): void {
  const delay = config.SHUTDOWN_DELAY_MS + config.SHUTDOWN_GRACE_MS
  closeWithGrace({ delay, logger: app.log }, async ({ signal, err }) => {
    if (err) app.log.fatal({ err }, 'closing after a failure')
    else app.log.info({ signal }, 'closing')
    drain(app)
    if (signal === 'SIGTERM') await sleep(config.SHUTDOWN_DELAY_MS)
    await closeServer(app)
    await close()
  })
}

/** Answers go on, each with `Connection: close`, so that the client's next request finds another way. */
function drain(app: FastifyInstance): void {
  app.draining = true
  app.server.prependListener('request', (_request, response) => {
    response.shouldKeepAlive = false
  })
}

/**
 * Node closes the connections that are idle when it is told to, and waits for the others; those whose
 * last response went out before they could be told to close would stay until their own timeout, and
 * those that never sent a whole request, for ever.
 */
async function closeServer(app: FastifyInstance): Promise<void> {
  const sweep = setInterval(() => {
    if (app.inFlight.requests === 0) app.server.closeAllConnections()
    else app.server.closeIdleConnections()
  }, 50)
  await app.close().finally(() => clearInterval(sweep))
}
