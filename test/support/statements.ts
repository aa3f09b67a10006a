import { refreshesStatement, serverStatement } from '../../src/postgres/readiness.ts'
import type { Statement } from '../../src/postgres/statements.ts'
import { pagedList } from '../../src/queries/pages.ts'
import { lookupStatements } from '../../src/queries/read.ts'
import { completedOrders } from '../../src/queries/transfer-orders.ts'
import { pagedLists } from '../../src/schemas/lists.ts'
import { TransferOrders } from '../../src/schemas/transfer-order.ts'

/** Every statement that a request runs, by its title. */
export const statements: ReadonlyMap<string, Statement> = new Map(
  [completedOrders(TransferOrders), ...pagedLists.map(pagedList)]
    .flatMap(({ queries }) => Object.values(queries))
    .flatMap(({ statements }) => Object.values(statements))
    .concat(Object.values(lookupStatements))
    .map((statement) => [statement.title, statement]),
)

/** Statements about the server, which no request runs. */
export const serverStatements: readonly Statement[] = [refreshesStatement, serverStatement]
