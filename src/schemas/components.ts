import { AccountTransaction, AccountTransactionList } from './account-transaction.ts'
import { PortfolioTransaction, PortfolioTransactionList } from './portfolio-transaction.ts'
import { ParameterError, Problem } from './problem.ts'
import { AssetsTransferOrder, AssetsTransferOrderList } from './transfer-order.ts'

/** All named schemas, for the app to register. */
export const components = [
  PortfolioTransaction,
  PortfolioTransactionList,
  AccountTransaction,
  AccountTransactionList,
  AssetsTransferOrder,
  AssetsTransferOrderList,
  Problem,
  ParameterError,
] as const
