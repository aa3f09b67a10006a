import { type RawBuilder, sql } from 'kysely'
import type { Database } from '../postgres/database.ts'
import { build } from '../postgres/statements.ts'
import { columnOf } from '../schemas/fields.ts'
import type { List } from '../schemas/list.ts'
import { problem } from '../schemas/problem.ts'
import { connectionOfApp, dataVersionOf, lookupColumns, totalOfAll } from './connection.ts'
import { type Cursor, formatCursor } from './cursor.ts'
import { p } from './parameters.ts'
import {
  type Found,
  type FoundList,
  type ListRequest,
  type Lookup,
  readLookup,
  readRows,
} from './read.ts'
import { ofLookup, type PagedList, type Query, responseQuery } from './response.ts'

// A version is a number of 32 bits; its changes have ordinals of 31 bits (migration 0002).
const ORDINAL_BITS = 31n
const LAST_ORDINAL = (1n << ORDINAL_BITS) - 1n

const lastOf = (version: number | string) => (BigInt(version) << ORDINAL_BITS) | LAST_ORDINAL

/** `known`: earlier version with the number of the cursor's. `next_page`: change number of the next page, if any. */
const COLUMNS = { horizon: 'bigint', known: 'text', next_page: 'bigint', removed: 'text' } as const

/** Reads the changes after a change number in one snapshot: rows in their latest state, and ids of removed rows. */
export function changesQuery(list: PagedList): Query {
  const { table } = list
  return responseQuery({
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
      .selectFrom(build.dynamic.table(table).as('t'))
      .where('t.change_number', '>', p.since)
      .where('t.change_number', '<', ofLookup(endOf('next_page')))
      .limit(p.limit),
    order: { change_number: 'asc' },
  })
}

/**
 * Reads the changes since a cursor.
 * @param known result of readLookup() for this request, if there was one
 * @throws Unavailable, or ProblemError 401, 404, 410
 */
export async function readChanges(
  db: Database,
  { table }: List,
  query: Query,
  request: ListRequest & { since: Cursor },
  known?: Found,
): Promise<FoundList> {
  const { reader, since, limit, connectionHash } = request
  reader.expectRows(limit)
  const sinceVersion = changesOf(since.version)
  const hasAllChanges = since.number === lastOf(sinceVersion)
  let found = known
  // Most polls of a complete copy find no changes. A lookup is then enough (bench/results/changes.md).
  if (hasAllChanges) found ??= await readLookup(db, table, request)
  if (!hasAllChanges || found?.lookup.version !== since.version) {
    const values = { since: String(since.number), limit, sinceVersion }
    found = await readRows(db, table, query, request, values, found)
  }
  const { cursor, hasMore, removed } = cursorAfter(since, found.lookup)
  const nextCursor = formatCursor(cursor, table, connectionHash)
  return { ...found, changes: { removed, nextCursor, hasMore } }
}

/** Number of changes of the connection: the data version without its time. */
const changesOf = (version: string) => version.slice(0, version.indexOf('.'))

/** @throws ProblemError 410 if the changes since the cursor are not known */
function cursorAfter(since: Cursor, lookup: Lookup) {
  const [horizon, known, nextPage, removed] = lookup.extra
  const isKnown = since.version === lookup.version || since.version === known
  const startNumber = lastOf(since.start)
  const latest = since.number > startNumber ? since.number : startNumber
  const isStarted = since.number > 0n
  if (isStarted && !(isKnown && latest >= BigInt(horizon ?? 0))) throw problem('cursor_expired')
  const hasMore = typeof nextPage === 'string'
  const newest = changesOf(lookup.version)
  const cursor = {
    number: hasMore ? BigInt(nextPage) - 1n : lastOf(newest),
    start: isStarted ? since.start : Number(newest),
    version: lookup.version,
  }
  return { cursor, hasMore, removed: removed ?? '' }
}

/** Change number at which the page ends. No index serves coalesce(): row-level security finds it leaky. */
function endOf(nextPage: string): RawBuilder<string> {
  const next = sql.ref(nextPage)
  return sql`case when ${next} is null then 9223372036854775807 else ${next} end`
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
function removed(list: List) {
  const { table } = list
  const id = sql.ref(columnOf(list.id))
  return sql`(
    select string_agg(distinct '"' || r.${id} || '"', ',') from ${sql.table(`${table}_removal`)} r
    where r.connection_id = ${p.connectionKey} and c.id is not null
      and r.change_number > ${p.since} and ${p.since} > 0
      and r.change_number < ${endOf('next.change_number')}
      and r.${id} is distinct from (select t.${id} from ${sql.table(table)} t
        where t.connection_id = ${p.connectionKey} and t.${id} >= r.${id}
        order by t.${id} limit 1))`
}
