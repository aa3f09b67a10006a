import { AccountTransaction } from '../schemas/account-transaction.ts'
import { transactionExport } from './export.ts'
import { transactionList } from './list-page.ts'

const { list, queries } = transactionList('account_transaction', AccountTransaction)

/** Lists the account transactions of a connection by pages (section 4.2). */
export const listAccountTransactions = list
export const accountTransactionQueries = queries
/** Reads all of them, in blocks, as a stream. */
export const exportAccountTransactions = transactionExport(queries, AccountTransaction)
