import { PortfolioTransaction } from '../schemas/portfolio-transaction.ts'
import { transactionExport } from './export.ts'
import { transactionList } from './list-page.ts'

const { list, queries } = transactionList('portfolio_transaction', PortfolioTransaction)

/** Lists the portfolio transactions of a connection by pages (section 4.1). */
export const listPortfolioTransactions = list
export const portfolioTransactionQueries = queries
/** Reads all of them, in blocks, as a stream. */
export const exportPortfolioTransactions = transactionExport(queries, PortfolioTransaction)
