import type { TSchema } from '@sinclair/typebox'
import {
  AccountTransaction,
  AccountTransactionList,
  AccountTransactionType,
} from './account-transaction.ts'
import { Decimal, exactDecimals } from './fields.ts'
import {
  PortfolioTransaction,
  PortfolioTransactionList,
  PortfolioTransactionType,
  RetentionDetail,
} from './portfolio-transaction.ts'
import { ParameterError, Problem } from './problem.ts'
import { AssetsTransferOrder, AssetsTransferOrderList, Company } from './transfer-order.ts'

const responses = [
  PortfolioTransaction,
  PortfolioTransactionList,
  AccountTransaction,
  AccountTransactionList,
  AssetsTransferOrder,
  AssetsTransferOrderList,
]

/** All named schemas, for the app to register. */
export const components = [
  ...responses,
  ...responses.map((schema) => exactDecimals<TSchema>(schema)),
  Problem,
  ParameterError,
]

/** Schemas that fields copy, and that the OpenAPI document names. */
export const parts = [
  PortfolioTransactionType,
  AccountTransactionType,
  RetentionDetail,
  exactDecimals(RetentionDetail),
  Company,
  Decimal,
  exactDecimals(Decimal),
] as const
