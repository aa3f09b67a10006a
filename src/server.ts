import closeWithGrace from 'close-with-grace'
import { buildApp } from './app.ts'
import { type Config, ConfigurationError, readConfig } from './config.ts'
import { openDatabase } from './database/database.ts'

/** The process: settings, database, application, port; and the way back. */
async function start(config: Config): Promise<void> {
  // Without a database of its own, the service brings one: a convenience that production lacks.
  const development =
    config.DATABASE_URL === undefined ? await import('./development/demo.ts') : undefined
  const demo = await development?.startDemo(config.DATA_DIR)
  const db = openDatabase({
    url: config.DATABASE_URL ?? demo?.url ?? '',
    size: config.DATABASE_POOL_SIZE,
    waitMs: config.DATABASE_WAIT_MS,
    statementTimeoutMs: config.STATEMENT_TIMEOUT_MS,
    pooler: config.DATABASE_POOLER,
    prepare: config.DATABASE_PREPARE,
  })
  const app = await buildApp({ config, db, logger: { level: config.LOG_LEVEL } })
  const close = async () => {
    await app.close()
    await db.close()
    await demo?.stop()
  }
  closeWithGrace({ delay: 10_000, logger: app.log }, close)
  try {
    const address = await app.listen({ host: config.HOST, port: config.PORT })
    if (development) process.stdout.write(development.welcome(address))
  } catch (error) {
    await close()
    throw error
  }
}

/** What went wrong, in one sentence where the operator can mend it. */
function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { code, port } = error as Error & { code?: string; port?: number }
  if (code === 'EADDRINUSE') return `Port ${port} is taken: set PORT to another one.`
  const known = error instanceof ConfigurationError || error.name === 'EmbeddedDatabaseInUse'
  return known ? error.message : String(error.stack)
}

try {
  await start(readConfig(process.env))
} catch (error) {
  process.stderr.write(`${explain(error)}\n`)
  process.exit(1)
}
