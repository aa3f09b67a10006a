import type { Statement } from '../../src/postgres/statements.ts'
import { accountTransactionQueries } from '../../src/queries/account-transactions.ts'
import { callerStatements } from '../../src/queries/caller.ts'
import { lookupStatements } from '../../src/queries/connection.ts'
import { portfolioTransactionQueries } from '../../src/queries/portfolio-transactions.ts'
import { transferOrderQuery } from '../../src/queries/transfer-orders.ts'

const lists = [portfolioTransactionQueries, accountTransactionQueries].flatMap(Object.values)

/** Every statement that a request runs, by its title. */
export const statements: ReadonlyMap<string, Statement> = new Map(
  [callerStatements, lookupStatements, transferOrderQuery.statements]
    .concat(lists.map((query) => query.statements))
    .flatMap((each) => Object.values(each))
    .map((statement) => [statement.title, statement]),
)
