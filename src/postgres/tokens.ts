import { hash } from 'node:crypto'

/** Returns the SHA-256 of a token's UTF-8 bytes. The database stores only this hash. */
export function tokenHash(token: string): Buffer {
  // A third of the cost of the output `buffer`, whose memory Node.js allocates outside of the pool.
  return Buffer.from(hash('sha256', token, 'binary'), 'binary')
}

/** Returns the key of a connection: 8 bytes of its hash. It selects the partition, and on Citus the shard. */
export function connectionKey(hash: Buffer): string {
  return hash.readBigInt64BE(0).toString()
}

export function isConnectionKey(text: string): boolean {
  return /^-?\d{1,19}$/.test(text) && BigInt.asIntN(64, BigInt(text)) === BigInt(text)
}
