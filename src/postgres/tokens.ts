import { hash } from 'node:crypto'

/** SHA-256 of a token's UTF-8 bytes: all that is kept of a token of either kind (contract 20, 21). */
export function tokenHash(token: string): Buffer {
  return hash('sha256', token, 'buffer')
}
