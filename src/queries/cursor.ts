import { hash } from 'node:crypto'
import { crc32 } from 'node:zlib'

/** Position of a client in the changes of a list. */
export interface Cursor {
  /** Change number of the last change that the client has; 0: none. */
  number: bigint
  /** Version at the start of the copy, without its time. Earlier removals do not concern the client. */
  start: number
  /** Newest version that the client has seen. A connection that lost this version never has it again. */
  version: string
}

/** Value of `since` without an earlier cursor. */
const START = 'start'
const EMPTY: Cursor = { number: 0n, start: 0, version: '0.0' }

/** Positions of the numbers in the bytes of a cursor: 8 bytes, 5, 5 and 8. The checksum follows. */
const NUMBER = 0
const START_VERSION = 8
const CHANGES = 13
const TIME = 18
const CHECKSUM = 26
const BYTES = 30
/** Bytes of a version without its time. */
const VERSION_BYTES = 5

/** Writes an opaque cursor, as base64url without unused bits. */
export function formatCursor(cursor: Cursor, table: string, connectionHash: Buffer): string {
  const [changes = '', time = ''] = cursor.version.split('.')
  const bytes = Buffer.alloc(BYTES)
  bytes.writeBigInt64BE(cursor.number, NUMBER)
  bytes.writeUIntBE(cursor.start, START_VERSION, VERSION_BYTES)
  bytes.writeUIntBE(Number(changes), CHANGES, VERSION_BYTES)
  bytes.writeBigInt64BE(BigInt(time), TIME)
  bytes.writeUInt32BE(checksumOf(bytes, table, connectionHash), CHECKSUM)
  return bytes.toString('base64url')
}

/** @returns undefined for a cursor of another list or connection, or none at all */
export function parseCursor(
  text: string,
  table: string,
  connectionHash: Buffer,
): Cursor | undefined {
  if (text === START) return EMPTY
  // A cursor of release 1.0.0 has no version, so it expires.
  if (/^[\w-]{27}$/.test(text)) return { ...EMPTY, number: 1n }
  if (!/^[\w-]{40}$/.test(text)) return undefined
  const bytes = Buffer.from(text, 'base64url')
  if (checksumOf(bytes, table, connectionHash) !== bytes.readUInt32BE(CHECKSUM)) return undefined
  const changes = bytes.readUIntBE(CHANGES, VERSION_BYTES)
  return {
    number: bytes.readBigInt64BE(NUMBER),
    start: bytes.readUIntBE(START_VERSION, VERSION_BYTES),
    version: `${changes}.${bytes.readBigInt64BE(TIME)}`,
  }
}

/** Binds a cursor to its list and connection. 32 bits of the digest are too few to verify a guessed token. */
function checksumOf(bytes: Buffer, table: string, connectionHash: Buffer): number {
  const binding = hash('sha256', Buffer.concat([Buffer.from(table), connectionHash]), 'buffer')
  return crc32(bytes.subarray(0, CHECKSUM), binding.readUInt32BE())
}
