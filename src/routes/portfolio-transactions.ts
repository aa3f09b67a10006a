import type { FastifyInstance } from 'fastify'
import { formOf } from '../http/conditional-requests.ts'
import { readPortfolioTransactions } from '../queries/portfolio-transactions.ts'
import { ListQuery } from '../schemas/list.ts'
import { PortfolioTransaction, PortfolioTransactionList } from '../schemas/portfolio-transaction.ts'
import type { RouteOptions } from './connection-request.ts'
import { connectionSchema } from './operation.ts'
import { listHandler } from './paging.ts'

/** GET the portfolio transactions of a connection (section 4.1). */
export async function portfolioTransactions(
  app: FastifyInstance,
  options: RouteOptions,
): Promise<void> {
  app.get(
    '/connections/:token/portfolios/transactions',
    {
      schema: connectionSchema({
        operationId: 'listPortfolioTransactions',
        tag: 'Transactions',
        summary: 'List portfolio transactions',
        description: 'Every movement of the investments of a connection, newest first, in pages.',
        querystring: ListQuery(options.maximumLimit),
        answer: PortfolioTransactionList,
      }),
      attachValidation: true,
    },
    listHandler(
      options,
      readPortfolioTransactions,
      formOf(PortfolioTransaction, PortfolioTransactionList),
    ),
  )
}
