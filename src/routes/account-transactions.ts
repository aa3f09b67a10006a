import type { FastifyInstance } from 'fastify'
import { formOf } from '../http/conditional-requests.ts'
import { readAccountTransactions } from '../queries/account-transactions.ts'
import { AccountTransaction, AccountTransactionList } from '../schemas/account-transaction.ts'
import { ListQuery } from '../schemas/list.ts'
import type { RouteOptions } from './connection-request.ts'
import { connectionSchema } from './operation.ts'
import { listHandler } from './paging.ts'

/** GET the account transactions of a connection (section 4.2). */
export async function accountTransactions(
  app: FastifyInstance,
  options: RouteOptions,
): Promise<void> {
  app.get(
    '/connections/:token/accounts/transactions',
    {
      schema: connectionSchema({
        operationId: 'listAccountTransactions',
        tag: 'Transactions',
        summary: 'List account transactions',
        description: 'Every change of the cash balances of a connection, newest first, in pages.',
        querystring: ListQuery(options.maximumLimit),
        answer: AccountTransactionList,
      }),
      attachValidation: true,
    },
    listHandler(
      options,
      readAccountTransactions,
      formOf(AccountTransaction, AccountTransactionList),
    ),
  )
}
