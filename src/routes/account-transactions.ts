import { AccountTransactions } from '../schemas/account-transaction.ts'
import { list } from './list.ts'

/** GET /connections/:token/accounts/transactions (section 4.2). */
export const accountTransactions = list(AccountTransactions)
