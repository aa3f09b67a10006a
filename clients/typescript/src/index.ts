export {
  type CallOptions,
  type Changes,
  type Connection,
  type ConnectionOptions,
  InvestmentData,
  type InvestmentDataOptions,
  type RangeOptions,
  type SyncOptions,
  type SyncResult,
} from './client.ts'
export type { CopyChanges, CopyName, CopyResult, CopyStore, ListName } from './copy.ts'
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
export { type SqliteDatabase, SqliteStore } from './sqlite-store.ts'
export type {
  AccountTransaction,
  AccountTransactionType,
  AssetsTransferOrder,
  Company,
  Decimal,
  PortfolioTransaction,
  PortfolioTransactionType,
} from './types.ts'
