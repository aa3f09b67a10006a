import { AccountTransactions } from './account-transaction.ts'
import { columnOf, withReferences } from './fields.ts'
import { PortfolioTransactions } from './portfolio-transaction.ts'
import { Problem } from './problem.ts'
import { TransferOrders } from './transfer-order.ts'

export const lists = [PortfolioTransactions, AccountTransactions, TransferOrders] as const

/** The lists with pages and changes, each with the column of its `id`. */
export const pagedLists = lists
  .filter(({ hasChanges }) => hasChanges)
  .map((list) => ({ ...list, idColumn: columnOf(list.id) }))

const responses = lists.flatMap(({ item, response }) => [item, response])
const exactResponses = lists.flatMap(({ exact }) => [exact.item, exact.response])

/** All named schemas, for the app to register. */
export const components = withReferences([...responses, ...exactResponses, Problem])
