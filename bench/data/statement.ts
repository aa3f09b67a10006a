import type { Database } from '../../src/postgres/database.ts'
import { AnswerMemory, Holding } from '../../src/postgres/response-memory.ts'
import type { Parameter, Statement } from '../../src/postgres/statements.ts'
import { PLANNER_SETTINGS } from '../../src/postgres/statements.ts'
import { tokenHash } from '../../src/postgres/tokens.ts'
import type { ListFacts } from '../../src/queries/list-page.ts'
import { readPortfolioTransactions } from '../../src/queries/portfolio-transactions.ts'
import type { PageQuery } from '../servers/targets.ts'
import { appToken, connectionToken, keyOf } from './data-set.ts'

/** Settings of the service's connections (src/postgres/pool.ts), as a startup option. */
export const SESSION = Object.entries({ default_transaction_read_only: 'on', ...PLANNER_SETTINGS })
  .map(([name, value]) => `-c ${name}=${value}`)
  .join(' ')

/** Captures the statement that the service sends for a page. */
export function captureStatement(ask: PageQuery): Promise<{ text: string; values: Parameter[] }> {
  const facts = {
    holding: new Holding(new AnswerMemory(0), ask.limit),
    caller: { tokenHash: tokenHash(appToken(ask.connection)) },
    connection: tokenHash(connectionToken(ask.connection)),
    connectionKey: keyOf(ask.connection),
    knownVersions: [],
  }
  return new Promise((resolve, reject) => {
    const read = ({ text }: Statement, values: Parameter[]) => {
      resolve({ text, values })
      return Promise.reject(new Error('captured'))
    }
    const db = { read, replica: () => undefined } as unknown as Database
    readPortfolioTransactions(db, { ...ask, ...facts } as unknown as ListFacts).catch(reject)
  })
}
