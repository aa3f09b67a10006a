import { callerOfToken } from '../../src/http/authentication.ts'
import { Limits } from '../../src/limits/limits.ts'
import { MemoryAccount } from '../../src/limits/memory-account.ts'
import { PageSizes } from '../../src/limits/page-sizes.ts'
import { Tenant } from '../../src/limits/tenants.ts'
import type { Database } from '../../src/postgres/database.ts'
import { Reader } from '../../src/postgres/reader.ts'
import type { Parameter, Statement } from '../../src/postgres/statements.ts'
import { plannerSettings } from '../../src/postgres/statements.ts'
import { tokenHash } from '../../src/postgres/tokens.ts'
import { pagedList } from '../../src/queries/pages.ts'
import type { ListRequest } from '../../src/queries/read.ts'
import { FactRecorder } from '../../src/request-facts.ts'
import { PortfolioTransactions } from '../../src/schemas/portfolio-transaction.ts'
import type { PageQuery } from '../servers/targets.ts'
import { appToken, connectionToken } from './data-set.ts'

/** The settings of the service's connections (src/postgres/connect.ts), as startup options. */
export const SESSION = Object.entries({
  default_transaction_read_only: 'on',
  ...plannerSettings(true),
})
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
    const owner = { tenant: new Tenant() }
    const memory = new MemoryAccount(new Limits(1, 0).memory, owner)
    const request: ListRequest = {
      reader: new Reader({
        owner,
        memory,
        sizes: new PageSizes(),
        recorder: new FactRecorder(),
        onReadEnd: () => {},
      }),
      knowApp: () => {},
      caller: callerOfToken(appToken(query.connection)),
      connectionHash: tokenHash(connectionToken(query.connection)),
      purpose: 'page',
      isHead: false,
      limit: query.limit,
      page: query.page,
    }
    if (query.from !== undefined) request.from = query.from
    pagedList(PortfolioTransactions).read(db, request).catch(reject)
  })
}
