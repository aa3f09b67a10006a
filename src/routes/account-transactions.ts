import type { FastifyInstance } from 'fastify'
import { schemaFingerprint } from '../http/conditional-requests.ts'
import { listAccountTransactions } from '../queries/account-transactions.ts'
import { AccountTransaction, AccountTransactionList } from '../schemas/account-transaction.ts'
import { ListQuery } from '../schemas/list.ts'
import { charge, type RouteOptions } from './connection-request.ts'
import { connectionSchema } from './operation.ts'
import { listRequest, sendPage } from './paging.ts'

/** Route of the account transactions of a connection (section 4.2). */
export async function accountTransactions(
  app: FastifyInstance,
  options: RouteOptions,
): Promise<void> {
  const fingerprint = schemaFingerprint(AccountTransaction, AccountTransactionList)
  const list = { table: 'account_transaction', fingerprint } as const
  const schema = connectionSchema({
    operationId: 'listAccountTransactions',
    tag: 'Transactions',
    summary: 'List account transactions',
    description: 'Every change of the cash balances of a connection, newest first, in pages.',
    querystring: ListQuery(options.maximumLimit),
    response: AccountTransactionList,
  })
  const path = '/connections/:token/accounts/transactions'
  app.get(path, { schema, attachValidation: true }, async (_request, reply) => {
    const request = await listRequest(options, reply, list)
    const response = await charge(options, reply, listAccountTransactions(options.db, request))
    return sendPage(reply, request, response)
  })
}
