import closeWithGrace from 'close-with-grace'
import { buildApp } from './app.ts'
import { readConfig } from './config.ts'
import { openDatabase } from './database/database.ts'

const config = readConfig(process.env)
const db = openDatabase({
  url: config.DATABASE_URL ?? '',
  size: config.DATABASE_POOL_SIZE,
  waitMs: config.DATABASE_WAIT_MS,
  statementTimeoutMs: config.STATEMENT_TIMEOUT_MS,
  pooler: config.DATABASE_POOLER,
  prepare: config.DATABASE_PREPARE,
})
const app = await buildApp({ config, db, logger: { level: config.LOG_LEVEL } })
closeWithGrace({ delay: 10_000, logger: app.log }, async () => {
  await app.close()
  await db.close()
})
await app.listen({ host: config.HOST, port: config.PORT })
