import { type Parameter, parameter } from '../postgres/statements.ts'

/** Parameters of the statements of requests, with their types in TypeScript and in PostgreSQL. */
export const p = {
  /** SHA-256 of the app token. */
  tokenHash: parameter<Buffer>('tokenHash', 'bytea'),
  /** Client id in a token of the identity provider. */
  clientId: parameter<string>('clientId', 'text'),
  /** SHA-256 of the connection token. */
  connectionHash: parameter<Buffer>('connectionHash', 'bytea'),
  /** connectionKey() of this hash. It restricts every table that has rows of connections. */
  connectionKey: parameter<string>('connectionKey', 'bigint'),
  /** Table of the list whose rows a lookup counts. */
  table: parameter<string>('table', 'text'),
  /** First day of the rows; `-infinity` for the oldest. */
  from: parameter<string>('from', 'date'),
  /** Last day of the rows; `infinity` for the newest. */
  to: parameter<string>('to', 'date'),
  /** Maximum number of rows; null for all. */
  limit: parameter<number>('limit', 'bigint'),
  /** Number of rows before the page. */
  offset: parameter<number>('offset', 'bigint'),
  /** Number of the last change that the client has. */
  since: parameter<string>('since', 'bigint'),
  /** Number of changes of the version that the client has. */
  sinceVersion: parameter<string>('sinceVersion', 'bigint'),
}

/** Values of parameters by name. */
export type Values = { [Name in keyof typeof p]?: Parameter | number }
