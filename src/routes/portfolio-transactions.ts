import type { FastifyInstance } from 'fastify'
import { schemaFingerprint } from '../http/conditional-requests.ts'
import { listPortfolioTransactions } from '../queries/portfolio-transactions.ts'
import { ListQuery } from '../schemas/list.ts'
import { PortfolioTransaction, PortfolioTransactionList } from '../schemas/portfolio-transaction.ts'
import { charge, type RouteOptions } from './connection-request.ts'
import { connectionSchema } from './operation.ts'
import { listRequest, sendPage } from './paging.ts'

/** Route of the portfolio transactions of a connection (section 4.1). */
export async function portfolioTransactions(
  app: FastifyInstance,
  options: RouteOptions,
): Promise<void> {
  const fingerprint = schemaFingerprint(PortfolioTransaction, PortfolioTransactionList)
  const list = { table: 'portfolio_transaction', fingerprint } as const
  const schema = connectionSchema({
    operationId: 'listPortfolioTransactions',
    tag: 'Transactions',
    summary: 'List portfolio transactions',
    description: 'Every movement of the investments of a connection, newest first, in pages.',
    querystring: ListQuery(options.maximumLimit),
    response: PortfolioTransactionList,
  })
  const path = '/connections/:token/portfolios/transactions'
  app.get(path, { schema, attachValidation: true }, async (_request, reply) => {
    const request = await listRequest(options, reply, list)
    const response = await charge(options, reply, listPortfolioTransactions(options.db, request))
    return sendPage(reply, request, response)
  })
}
