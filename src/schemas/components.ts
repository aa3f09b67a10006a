import {
  AccountTransaction,
  AccountTransactionList,
  AccountTransactionType,
} from './account-transaction.ts'
import { Decimal } from './fields.ts'
import {
  PortfolioTransaction,
  PortfolioTransactionList,
  PortfolioTransactionType,
  RetentionDetail,
} from './portfolio-transaction.ts'
import { ParameterError, Problem } from './problem.ts'
import { AssetsTransferOrder, AssetsTransferOrderList, Company } from './transfer-order.ts'

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

/** Schemas that fields copy, and that the OpenAPI document names. */
export const parts = [
  PortfolioTransactionType,
  AccountTransactionType,
  RetentionDetail,
  Company,
  Decimal,
] as const
