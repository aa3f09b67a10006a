import { hash } from 'node:crypto'
import type { TObject } from '@sinclair/typebox'
import { sql } from 'kysely'
import type { Database } from '../postgres/database.ts'
import { build, parameter } from '../postgres/statements.ts'
import { CursorExpired } from './caller.ts'
import {
  changesOf,
  compileLookups,
  connectionOfApp,
  keyParameter,
  lookupColumns,
} from './connection.ts'
import {
  type ConnectionRequest,
  type ReadResponse,
  readResponse,
  responseQuery,
} from './read-response.ts'
import { ROW_ID, type TransactionTable, totalOfAll } from './row-counts.ts'

/** Request for the changes of one of the two transaction lists. */
export interface ChangesRequest extends ConnectionRequest {
  since: Cursor
  /** Maximum number of changes. */
  limit: number
}

export interface Cursor {
  /** Change number of the last change that the client has; 0: none. */
  number: bigint
  /**
   * Newest change number when the client began its copy with `since=start`. Older removals do not
   * concern it, while the numbers of its first pages can be below the horizon.
   */
  start: bigint
}

/** Value of `since` without an earlier cursor. */
const START = 'start'

// A version is a number of 32 bits; its changes have ordinals of 31 bits (migration 0002).
const ORDINAL_BITS = 31n
const LAST_ORDINAL = (1n << ORDINAL_BITS) - 1n

/** A short digest binds a cursor to its list and connection. It is too short to verify a guessed token. */
function bindingOf(table: TransactionTable, tokenHash: Buffer): string {
  return hash('sha256', Buffer.concat([Buffer.from(table), tokenHash]), 'hex').slice(0, 8)
}

/** Writes an opaque cursor: twice 8 bytes of the numbers and 4 of the binding, as base64url. */
function formatCursor({ number, start }: Cursor, table: TransactionTable, tokenHash: Buffer) {
  const bytes = Buffer.alloc(16)
  bytes.writeBigInt64BE(number)
  bytes.writeBigInt64BE(start, 8)
  const binding = Buffer.from(bindingOf(table, tokenHash), 'hex')
  return Buffer.concat([bytes, binding]).toString('base64url')
}

/** @returns undefined for a cursor of another list or connection, or none at all */
export function parseCursor(
  text: string,
  table: TransactionTable,
  tokenHash: Buffer,
): Cursor | undefined {
  if (text === START) return { number: 0n, start: 0n }
  if (!/^[A-Za-z0-9_-]{27}$/.test(text)) return undefined
  const bytes = Buffer.from(text, 'base64url')
  const isBound = bytes.toString('hex', 16) === bindingOf(table, tokenHash)
  const [number, start] = [bytes.readBigInt64BE(), bytes.readBigInt64BE(8)]
  return isBound && number >= 0n && start >= 0n ? { number, start } : undefined
}

// $1 to $3 identify the caller and the connection.
const since = parameter<string>(4, 'bigint')
const limit = parameter<number>(5, 'bigint')

/** Columns after LOOKUP_COLUMNS. `next_page`: change number at which the next page starts, if any. */
const COLUMNS = ['horizon', 'next_page', 'removed'] as const

/**
 * Compiles the statement for the changes of a list since a change number: rows in their latest state, and
 * ids of removed rows. All are of one snapshot, in the order in which they became visible.
 */
export function changeFeed(table: TransactionTable, item: TObject) {
  const query = responseQuery({
    name: `${table} changes`,
    purpose: 'Reads the rows that changed since a cursor, and the ids of removed rows.',
    table,
    item,
    columns: COLUMNS,
    lookups: compileLookups(`${table} lookup`, 'Reads version and total.', totalOfAll(table)),
    lookup: (method) =>
      connectionOfApp(method)
        .leftJoinLateral(nextPage(table).as('next'), (join) => join.onTrue())
        .select([
          ...lookupColumns(totalOfAll(table)),
          'c.change_horizon as horizon',
          'next.change_number as next_page',
          sql<string>`case when c.id is not null then ${removed(table)} end`.as('removed'),
        ]),
    rows: sql`
      t.change_number > ${since}
      and (lookup.next_page is null or t.change_number < lookup.next_page)
      order by t.change_number limit ${limit}`,
  })
  const list = async (db: Database, request: ChangesRequest): Promise<ReadResponse> => {
    let nextCursor: string | undefined
    const { number: position, start } = request.since
    const values = [String(position), String(request.limit)]
    // Most polls of a complete copy find no changes. A lookup is then enough (docs/performance.md).
    const isComplete = (position & LAST_ORDINAL) === LAST_ORDINAL
    const knownChanges = isComplete ? String(position >> ORDINAL_BITS) : undefined
    const read = { ...request, knownChanges }
    const response = await readResponse(db, query, read, values, (lookup) => {
      const [horizon, nextPage, removedIds] = lookup.extra
      const newest = (BigInt(changesOf(lookup)) << ORDINAL_BITS) | LAST_ORDINAL
      const latest = position > start ? position : start
      const isKnown = latest >= BigInt(horizon ?? 0) && latest <= newest
      if (position > 0n && !isKnown) throw new CursorExpired()
      const hasMore = typeof nextPage === 'string'
      const next = {
        number: hasMore ? BigInt(nextPage) - 1n : newest,
        start: position > 0n ? start : newest,
      }
      const cursor = formatCursor(next, table, request.tokenHash)
      if (hasMore) nextCursor = cursor
      return {
        opening: '{"items":[',
        closing:
          `],"limit":${request.limit},"page":0,"totalItems":${lookup.totalItems},` +
          `"removed":[${removedIds ?? ''}],"nextCursor":"${cursor}","hasMore":${hasMore}}`,
      }
    })
    return { ...response, nextCursor }
  }
  return { list, query }
}

/** Selects the change number after the page: that of the first change beyond `limit`. */
function nextPage(table: TransactionTable) {
  const first = (name: string) => sql`
    (select t.change_number from ${sql.table(name)} t
      where t.connection_id = ${keyParameter} and c.id is not null and t.change_number > ${since}
        ${name === table ? sql`` : sql`and ${since} > 0`}
      order by t.change_number limit ${limit} + 1)`
  return build
    .selectFrom(
      sql<{ change_number: string }>`(${first(table)} union all ${first(`${table}_removal`)})`.as(
        'changes',
      ),
    )
    .select('change_number')
    .orderBy('change_number')
    .offset(limit)
    .limit(sql.lit(1))
}

/**
 * Selects the removed ids of the page, as JSON strings. A client without any rows needs none. A row that
 * exists again is not removed: the next id in the order of the primary key is the same. PostgreSQL would
 * plan a comparison with `=` on empty tables as a scan of all rows.
 */
function removed(table: TransactionTable) {
  const id = sql.ref(ROW_ID[table])
  return sql`(
    select string_agg(distinct '"' || r.${id} || '"', ',') from ${sql.table(`${table}_removal`)} r
    where r.connection_id = ${keyParameter} and c.id is not null
      and r.change_number > ${since} and ${since} > 0
      and (next.change_number is null or r.change_number < next.change_number)
      and r.${id} is distinct from (select t.${id} from ${sql.table(table)} t
        where t.connection_id = ${keyParameter} and t.${id} >= r.${id}
        order by t.${id} limit 1))`
}
