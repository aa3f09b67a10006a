import { accountTransactions } from './account-transactions.ts'
import type { ListRoute } from './list.ts'
import { portfolioTransactions } from './portfolio-transactions.ts'
import { transferOrders } from './transfer-orders.ts'

/**
 * Every list of the API. The app registers them, and tests go over them: plans, isolation, row-level security, generated
 * statements.
 */
export const lists: readonly ListRoute[] = [
  portfolioTransactions,
  accountTransactions,
  transferOrders,
]
