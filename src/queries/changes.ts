import { hash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { sql } from 'kysely'
import type { RowWriter } from '../json/row-writer.ts'
import type { Database } from '../postgres/database.ts'
import { build } from '../postgres/statements.ts'
import { columnOf } from '../schemas/fields.ts'
import type { Format, ListDefinition } from '../schemas/list.ts'
import { problem } from '../schemas/problem.ts'
import { connectionOfApp, dataVersionOf, lookupColumns, totalOfAll } from './connection.ts'
import { p } from './parameters.ts'
import {
  type Cursor,
  type ListRequest,
  type Lookup,
  type ReadResponse,
  readRows,
  responseOf,
} from './read.ts'
import { responseQuery } from './response.ts'

/** Value of `since` without an earlier cursor. */
const START = 'start'
const EMPTY: Cursor = { number: 0n, start: 0, version: '0.0' }

// A version is a number of 32 bits; its changes have ordinals of 31 bits (migration 0002).
const ORDINAL_BITS = 31n
const LAST_ORDINAL = (1n << ORDINAL_BITS) - 1n

const lastOf = (version: number | string) => (BigInt(version) << ORDINAL_BITS) | LAST_ORDINAL

const NUMBERS_BYTES = 26

/** Binds a cursor to its list and connection. 32 bits of the digest are too few to verify a guessed token. */
function checksumOf(numbers: Buffer, table: string, connection: Buffer): number {
  const binding = hash('sha256', Buffer.concat([Buffer.from(table), connection]), 'buffer')
  return crc32(numbers, binding.readUInt32BE())
}

/** Writes an opaque cursor: 26 bytes of numbers and 4 of the checksum, as base64url without unused bits. */
function formatCursor(cursor: Cursor, table: string, connection: Buffer): string {
  const [changes = '', time = ''] = cursor.version.split('.')
  const bytes = Buffer.alloc(NUMBERS_BYTES + 4)
  bytes.writeBigInt64BE(cursor.number)
  bytes.writeUIntBE(cursor.start, 8, 5)
  bytes.writeUIntBE(Number(changes), 13, 5)
  bytes.writeBigInt64BE(BigInt(time), 18)
  const numbers = bytes.subarray(0, NUMBERS_BYTES)
  bytes.writeUInt32BE(checksumOf(numbers, table, connection), NUMBERS_BYTES)
  return bytes.toString('base64url')
}

/** @returns undefined for a cursor of another list or connection, or none at all */
export function parseCursor(text: string, table: string, connection: Buffer): Cursor | undefined {
  if (text === START) return EMPTY
  // A cursor of release 1.0.0 has no version, so it expires.
  if (/^[\w-]{27}$/.test(text)) return { ...EMPTY, number: 1n }
  if (!/^[\w-]{40}$/.test(text)) return undefined
  const bytes = Buffer.from(text, 'base64url')
  const checksum = checksumOf(bytes.subarray(0, NUMBERS_BYTES), table, connection)
  if (checksum !== bytes.readUInt32BE(NUMBERS_BYTES)) return undefined
  return {
    number: bytes.readBigInt64BE(),
    start: bytes.readUIntBE(8, 5),
    version: `${bytes.readUIntBE(13, 5)}.${bytes.readBigInt64BE(18)}`,
  }
}

/** `known`: earlier version with the number of the cursor's. `next_page`: change number of the next page, if any. */
const COLUMNS = ['horizon', 'known', 'next_page', 'removed'] as const

/** Reads the changes after a change number in one snapshot: rows in their latest state, and ids of removed rows. */
export function changeFeed(list: ListDefinition, writers: Record<Format, RowWriter>) {
  // Both lists of transactions have the columns that this query uses.
  const table = list.table as 'portfolio_transaction'
  const query = responseQuery({
    title: `${table} changes`,
    purpose: 'Reads the rows that changed since a cursor, and the ids of removed rows.',
    list,
    columns: COLUMNS,
    lookup: (method) =>
      connectionOfApp(method)
        .leftJoinLateral(nextPage(table).as('next'), (join) => join.onTrue())
        .select([
          ...lookupColumns(totalOfAll(table)),
          'c.change_horizon as horizon',
          sql<string>`(
            select ${dataVersionOf('v')} from connection_version v
            where v.connection_id = ${p.connectionKey} and c.id is not null
              and ${p.since} > 0 and v.data_version = ${p.sinceVersion})`.as('known'),
          'next.change_number as next_page',
          sql<string>`case when c.id is not null then ${removed(list)} end`.as('removed'),
        ]),
    rows: build
      .selectFrom(`${table} as t`)
      .where('t.change_number', '>', p.since)
      .where(isBefore('t', 'lookup.next_page'))
      .orderBy('t.change_number')
      .limit(p.limit),
  })
  const read = async (
    db: Database,
    request: ListRequest & { since: Cursor },
  ): Promise<ReadResponse> => {
    const { since, limit, format } = request
    const changes = changesOf(since.version)
    const values = { since: String(since.number), limit, sinceVersion: changes }
    // Most polls of a complete copy find no changes. A lookup is then enough (docs/performance.md).
    const copied = since.number === lastOf(changes) ? since.version : undefined
    const found = await readRows(db, query, request, values, copied)
    const { lookup, rows } = found
    if (rows === undefined) return { lookup, items: 0, body: undefined }
    const { next, hasMore, removed } = nextCursor(since, lookup)
    const cursor = formatCursor(next, table, request.connectionHash)
    const closing =
      `],"limit":${limit},"page":0,"totalItems":${lookup.totalItems},` +
      `"removed":[${removed}],"nextCursor":"${cursor}","hasMore":${hasMore}}`
    const frame = { opening: '{"items":[', closing }
    const response = responseOf(found, request, writers[format], frame)
    return hasMore ? { ...response, nextCursor: cursor } : response
  }
  return { read, query }
}

/** Number of changes of the connection: the data version without its time. */
const changesOf = (version: string) => version.slice(0, version.indexOf('.'))

/** @throws ProblemError 410 if the changes since the cursor are not known */
function nextCursor(since: Cursor, lookup: Lookup) {
  const [horizon, known, nextPage, removed] = lookup.extra
  const isKnown = since.version === lookup.version || since.version === known
  const startNumber = lastOf(since.start)
  const latest = since.number > startNumber ? since.number : startNumber
  const isStarted = since.number > 0n
  if (isStarted && !(isKnown && latest >= BigInt(horizon ?? 0))) throw problem('cursor_expired')
  const hasMore = typeof nextPage === 'string'
  const newest = changesOf(lookup.version)
  const next = {
    number: hasMore ? BigInt(nextPage) - 1n : lastOf(newest),
    start: isStarted ? since.start : Number(newest),
    version: lookup.version,
  }
  return { next, hasMore, removed: removed ?? '' }
}

/** Compares with the next page, if there is one, in a form that limits the range of the index. */
function isBefore(table: string, nextPage: string) {
  return sql<boolean>`${sql.ref(`${table}.change_number`)} <
    case when ${sql.ref(nextPage)} is null then 9223372036854775807 else ${sql.ref(nextPage)} end`
}

/** Selects the change number after the page: that of the first change beyond `limit`. */
function nextPage(table: string) {
  const first = (name: string) => sql`
    (select t.change_number from ${sql.table(name)} t
      where t.connection_id = ${p.connectionKey} and c.id is not null and t.change_number > ${p.since}
        ${name === table ? sql`` : sql`and ${p.since} > 0`}
      order by t.change_number limit ${p.limit} + 1)`
  return sql<{ change_number: string }>`(
    select change_number from (${first(table)} union all ${first(`${table}_removal`)}) as changes
    order by change_number offset ${p.limit} limit 1)`
}

/** Selects the removed ids of the page that have no row again. For `=`, PostgreSQL would plan a scan of all rows. */
function removed(list: ListDefinition) {
  const { table } = list
  const id = sql.ref(columnOf(list.id))
  return sql`(
    select string_agg(distinct '"' || r.${id} || '"', ',') from ${sql.table(`${table}_removal`)} r
    where r.connection_id = ${p.connectionKey} and c.id is not null
      and r.change_number > ${p.since} and ${p.since} > 0
      and ${isBefore('r', 'next.change_number')}
      and r.${id} is distinct from (select t.${id} from ${sql.table(table)} t
        where t.connection_id = ${p.connectionKey} and t.${id} >= r.${id}
        order by t.${id} limit 1))`
}
