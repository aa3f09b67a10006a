import { AccountTransaction, AccountTransactionList } from './account-transaction.ts'
import { PortfolioTransaction, PortfolioTransactionList } from './portfolio-transaction.ts'
import { ParameterFault, Problem } from './problem.ts'
import { AssetsTransferOrder, AssetsTransferOrderList } from './transfer-order.ts'

/** All schemas that others refer to by name: whoever serves or checks the contract registers them. */
export const components = [
  PortfolioTransaction,
  PortfolioTransactionList,
  AccountTransaction,
  AccountTransactionList,
  AssetsTransferOrder,
  AssetsTransferOrderList,
  Problem,
  ParameterFault,
] as const
