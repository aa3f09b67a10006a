import { buildApp } from './app.ts'
import { type Config, readConfig, withoutEmbedded } from './config.ts'
import { logDestination } from './http/request-log.ts'
import { OperatorError } from './operator-error.ts'
import { openDatabase } from './postgres/database.ts'
import { checkSchema, closeOnSignal, databaseOptions, logReplicas } from './shutdown.ts'

/** The process: settings, database, application, port; and the way back. */
async function start(config: Config): Promise<void> {
  // Without a database of its own, the service brings one: a convenience that production lacks.
  const development =
    config.DATABASE_URL === undefined
      ? await import('../tools/embedded-postgres/demo.ts').catch(withoutEmbedded)
      : undefined
  const demo = await development?.startDemo(config.DATA_DIR)
  const db = openDatabase(databaseOptions(config, config.DATABASE_URL ?? demo?.url ?? ''))
  const logger = { level: config.LOG_LEVEL, stream: logDestination() }
  const app = await buildApp({ config, db, logger })
  logReplicas(app, db)
  const close = async () => {
    await db.close()
    await demo?.stop()
  }
  closeOnSignal(app, config, close)
  try {
    await checkSchema(app, db)
    const address = await app.listen({ host: config.HOST, port: config.PORT })
    if (development) process.stdout.write(development.welcome(address))
  } catch (error) {
    await app.close()
    await close()
    throw error
  }
}

/** Describes an error in one sentence where the operator can resolve it, else with its stack. */
function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error instanceof OperatorError) return error.message
  return explainListening(error) ?? String(error.stack)
}

/** Why there is no listening where HOST and PORT say, as far as the operator can mend it. */
function explainListening(error: NodeJS.ErrnoException & { port?: number }): string | undefined {
  const { code, port, syscall } = error
  if (code === 'EADDRINUSE') return `Port ${port} is taken: set PORT to another one.`
  if (code === 'EADDRNOTAVAIL') return 'HOST is no address of this machine: set it to one that is.'
  if (syscall === 'getaddrinfo') return 'HOST names no address: set it to one of this machine.'
  if (code === 'EACCES' && syscall === 'listen') {
    return `Port ${port} is not for this user: set PORT to another one.`
  }
  return undefined
}

try {
  await start(readConfig(process.env))
} catch (error) {
  process.stderr.write(`${explain(error)}\n`)
  process.exit(1)
}
