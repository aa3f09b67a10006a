export {
  type Changes,
  type Connection,
  InvestmentData,
  type InvestmentDataOptions,
  type RangeOptions,
  type SyncOptions,
  type SyncResult,
} from './client.ts'
export {
  type ParameterFault,
  type ProblemCode,
  ProblemError,
  TransportError,
} from './errors.ts'
export type { RetryOptions } from './http.ts'
export type {
  AccountTransaction,
  AccountTransactionType,
  AssetsTransferOrder,
  Company,
  Decimal,
  PortfolioTransaction,
  PortfolioTransactionType,
} from './types.ts'
