import { appliedStatement } from '../../src/postgres/migrations.ts'
import {
  distributedTable,
  forcesGenericPlans,
  refreshesStatement,
  serverInfoStatement,
  unrestrictedRole,
} from '../../src/postgres/readiness.ts'
import { walPositionStatement } from '../../src/postgres/replicas.ts'
import type { Statement } from '../../src/postgres/statements.ts'
import type { ResponseQuery } from '../../src/queries/read-response.ts'
import { transferOrderQuery } from '../../src/queries/transfer-orders.ts'
import { accountTransactions } from '../../src/routes/account-transactions.ts'
import { portfolioTransactions } from '../../src/routes/portfolio-transactions.ts'

const lists: ResponseQuery[] = [portfolioTransactions, accountTransactions].flatMap(({ queries }) =>
  Object.values(queries),
)

/** Every statement that a request runs, by its title. */
export const statements: ReadonlyMap<string, Statement> = new Map(
  [transferOrderQuery, ...lists]
    .flatMap((query) => [query.statements, query.lookups])
    .flatMap((each) => Object.values(each))
    .map((statement) => [statement.title, statement]),
)

/** Statements about the server, which no request runs. */
export const serverStatements: readonly Statement[] = [
  appliedStatement,
  distributedTable,
  forcesGenericPlans,
  refreshesStatement,
  serverInfoStatement,
  unrestrictedRole,
  walPositionStatement,
]
