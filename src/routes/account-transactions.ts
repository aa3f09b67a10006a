import type { FastifyInstance } from 'fastify'
import { schemaFingerprint } from '../http/representation.ts'
import { transactionList } from '../queries/transactions.ts'
import { AccountTransaction, AccountTransactionList } from '../schemas/account-transaction.ts'
import { ListQuery } from '../schemas/list.ts'
import { admit, parseList, type RouteOptions } from './request.ts'
import { sendExport, sendPage } from './response.ts'

export const accountTransactions = transactionList('account_transaction', AccountTransaction)

/** Route of the account transactions of a connection (section 4.2). */
export async function accountTransactionRoute(
  app: FastifyInstance,
  options: RouteOptions,
): Promise<void> {
  const fingerprint = schemaFingerprint(AccountTransaction, AccountTransactionList)
  const exportFingerprint = schemaFingerprint(AccountTransaction)
  const source = { table: 'account_transaction', fingerprint, exportFingerprint } as const
  const schema = {
    operationId: 'listAccountTransactions',
    tags: ['Transactions'],
    summary: 'List account transactions',
    description: 'Every change of the cash balances of a connection, newest first, in pages.',
    querystring: ListQuery(options.maximumLimit),
    response: { 200: AccountTransactionList },
  }
  const path = '/connections/:token/accounts/transactions'
  app.get(path, { schema, attachValidation: true }, async (request, reply) => {
    const { list, format, errors } = parseList(request, options.maximumLimit, source)
    await admit(options, reply, errors)
    if (format !== undefined) {
      const response = await accountTransactions.exportRows(options.db, format.rows, list)
      return sendExport(reply, options.unfinished, 'account-transactions', format, list, response)
    }
    const response = await accountTransactions.list(options.db, list)
    return sendPage(reply, list, response)
  })
}
