export { chronological, effectiveDay } from './chronological.ts'
export {
  type CallOptions,
  type Changes,
  type Connection,
  type ConnectionOptions,
  InvestmentData,
  type InvestmentDataOptions,
  type ListFacts,
  type ListOptions,
  type RangeOptions,
  type Rows,
  type SyncOptions,
  type SyncResult,
  type SyncTransactionsOptions,
} from './client.ts'
export type {
  CopyChanges,
  CopyCounts,
  CopyName,
  CopyResult,
  CopyState,
  CopyStore,
  KnownCopy,
  ListName,
  OnChanges,
  RowChanges,
  SyncedCopies,
} from './copy.ts'
export { sum } from './decimals.ts'
export {
  AuthenticationError,
  CopyError,
  CursorExpiredError,
  InvestmentDataError,
  type ParameterFault,
  type ProblemCode,
  ProblemError,
  QuotaError,
  TransportError,
} from './errors.ts'
export type { Attempt, RetryOptions } from './http.ts'
export type { InvestmentNames } from './names.ts'
export { type PositionEffect, positionEffect } from './position-effect.ts'
export type { Gap, PositionCheck, PositionReason, PositionStatus } from './position-walk.ts'
export {
  checkPositions,
  type Position,
  type PositionsByDayOptions,
  type PositionsOfDay,
  type PositionsOptions,
  positions,
  positionsByDay,
} from './positions.ts'
export {
  type PostgresBound,
  type PostgresClient,
  type PostgresPool,
  type PostgresReader,
  PostgresStore,
  type PostgresStoreOptions,
} from './postgres-store.ts'
export type {
  AccountTransaction,
  AccountTransactionType,
  AssetsTransferOrder,
  Company,
  PortfolioTransaction,
  PortfolioTransactionType,
  RetentionDetail,
} from './rows.ts'
export {
  type DeleteOptions,
  type SqliteBound,
  type SqliteDatabase,
  type SqliteReader,
  SqliteStore,
  type SqliteStoreOptions,
} from './sqlite-store.ts'
export type { Decimal } from './texts.ts'
