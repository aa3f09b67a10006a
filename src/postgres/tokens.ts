import { hash } from 'node:crypto'

/** SHA-256 of a token's UTF-8 bytes: all that is kept of a token of either kind (contract 20, 21). */
export function tokenHash(token: string): Buffer {
  return hash('sha256', token, 'buffer')
}

/**
 * The key of a connection: the first 8 bytes of its token's SHA-256 as a signed bigint, in digits.
 * PostgreSQL prunes partitions by it, and Citus routes by it, before a statement runs.
 */
export function connectionKey(hash: Buffer): string {
  return hash.readBigInt64BE(0).toString()
}
