import type { FastifyInstance } from 'fastify'
import type { Database } from '../database/database.ts'
import { missingMigrations } from '../database/schema-state.ts'
import { Refusal } from '../plugins/problems.ts'

/**
 * What a supervisor asks: is the process alive, and is it able to answer? Neither needs a token, and
 * neither is in the access log.
 */
export async function health(app: FastifyInstance, { db }: { db: Database }): Promise<void> {
  app.get('/live', { logLevel: 'silent', schema: { hide: true } }, async () => ({ status: 'live' }))
  app.get('/ready', { logLevel: 'silent', schema: { hide: true } }, async () => {
    const missing = await missingMigrations(db)
    if (missing.length > 0) {
      throw new Refusal('service_unavailable', 'The schema of the database is behind.', {
        headers: { 'retry-after': '1' },
      })
    }
    return { status: 'ready' }
  })
}
