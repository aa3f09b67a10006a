import { PortfolioTransactions } from '../schemas/portfolio-transaction.ts'
import { list } from './list.ts'

/** GET /connections/:token/portfolios/transactions (section 4.1). */
export const portfolioTransactions = list(PortfolioTransactions)
