import type { Statement } from '../../src/postgres/statements.ts'
import { accountTransactionQueries } from '../../src/queries/account-transactions.ts'
import { callersStatement } from '../../src/queries/caller.ts'
import { portfolioTransactionQueries } from '../../src/queries/portfolio-transactions.ts'
import type { ResponseQuery } from '../../src/queries/read-response.ts'
import { transferOrderQuery } from '../../src/queries/transfer-orders.ts'

const lists: ResponseQuery[] = [portfolioTransactionQueries, accountTransactionQueries].flatMap(
  Object.values,
)

/** Every statement that a request runs, by its title. */
export const statements: ReadonlyMap<string, Statement> = new Map(
  [transferOrderQuery, ...lists]
    .flatMap((query) => [query.statements, query.lookups])
    .flatMap((each) => Object.values(each))
    .concat(callersStatement)
    .map((statement) => [statement.title, statement]),
)
