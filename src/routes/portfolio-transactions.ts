import type { FastifyInstance } from 'fastify'
import { schemaFingerprint } from '../http/representation.ts'
import { transactionList } from '../queries/transactions.ts'
import { ListQuery } from '../schemas/list.ts'
import { PortfolioTransaction, PortfolioTransactionList } from '../schemas/portfolio-transaction.ts'
import { admit, parseList, type RouteOptions } from './request.ts'
import { sendExport, sendPage } from './response.ts'

export const portfolioTransactions = transactionList('portfolio_transaction', PortfolioTransaction)

/** Route of the portfolio transactions of a connection (section 4.1). */
export async function portfolioTransactionRoute(
  app: FastifyInstance,
  options: RouteOptions,
): Promise<void> {
  const fingerprint = schemaFingerprint(PortfolioTransaction, PortfolioTransactionList)
  const exportFingerprint = schemaFingerprint(PortfolioTransaction)
  const source = { table: 'portfolio_transaction', fingerprint, exportFingerprint } as const
  const schema = {
    operationId: 'listPortfolioTransactions',
    tags: ['Transactions'],
    summary: 'List portfolio transactions',
    description: 'Every movement of the investments of a connection, newest first, in pages.',
    querystring: ListQuery(options.maximumLimit),
    response: { 200: PortfolioTransactionList },
  }
  const path = '/connections/:token/portfolios/transactions'
  app.get(path, { schema, attachValidation: true }, async (request, reply) => {
    const { list, format, errors } = parseList(request, options.maximumLimit, source)
    await admit(options, reply, errors)
    if (format !== undefined) {
      const response = await portfolioTransactions.exportRows(options.db, format.rows, list)
      return sendExport(reply, options.unfinished, 'portfolio-transactions', format, list, response)
    }
    const response = await portfolioTransactions.list(options.db, list)
    return sendPage(reply, list, response)
  })
}
