import type { TSchema } from '@sinclair/typebox'
import { AccountTransactions, AccountTransactionType } from './account-transaction.ts'
import { columnOf, Decimal, exactDecimals } from './fields.ts'
import {
  PortfolioTransactions,
  PortfolioTransactionType,
  RetentionDetail,
} from './portfolio-transaction.ts'
import { ParameterError, Problem } from './problem.ts'
import { Company, TransferOrders } from './transfer-order.ts'

export const lists = [PortfolioTransactions, AccountTransactions, TransferOrders] as const

/** The lists with pages and changes, each with the column of its `id`. */
export const pagedLists = lists
  .filter(({ hasChanges }) => hasChanges)
  .map((list) => ({ ...list, idColumn: columnOf(list.id) }))

const responses = lists.flatMap(({ item, response }): TSchema[] => [item, response])

/** All named schemas, for the app to register. */
export const components = [
  ...responses,
  ...responses.map((schema) => exactDecimals(schema)),
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
