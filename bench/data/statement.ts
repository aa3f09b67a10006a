import { ResponseMemory } from '../../src/limits/response-memory.ts'
import type { Database } from '../../src/postgres/database.ts'
import type { Parameter, Statement } from '../../src/postgres/statements.ts'
import { PLANNER_SETTINGS } from '../../src/postgres/statements.ts'
import { tokenHash } from '../../src/postgres/tokens.ts'
import { listPortfolioTransactions } from '../../src/queries/portfolio-transactions.ts'
import type { PageQuery } from '../servers/targets.ts'
import { appToken, connectionToken, keyOf } from './data-set.ts'

/** The settings of the service's connections (src/postgres/pool.ts), as startup options. */
export const SESSION = Object.entries({ default_transaction_read_only: 'on', ...PLANNER_SETTINGS })
  .map(([name, value]) => `-c ${name}=${value}`)
  .join(' ')

/** Captures what the service sends to the database for a page. */
export function captureStatement(query: PageQuery): Promise<{ text: string; values: Parameter[] }> {
  return new Promise((resolve, reject) => {
    const read = ({ text }: Statement, values: Parameter[]) => {
      resolve({ text, values })
      return Promise.reject(new Error('captured'))
    }
    const db = { read, replica: () => undefined } as unknown as Database
    const request = {
      caller: { tokenHash: tokenHash(appToken(query.connection)) },
      tokenHash: tokenHash(connectionToken(query.connection)),
      connectionKey: keyOf(query.connection),
      representation: '',
      mediaType: 'application/json',
      exact: false,
      knownVersions: [],
      reservation: new ResponseMemory(0).reserve(query.limit, performance.now()),
      from: query.from,
      to: undefined,
      since: undefined,
      limit: query.limit,
      page: query.page,
    }
    listPortfolioTransactions(db, request).catch(reject)
  })
}
