import { sql } from 'kysely'
import type { Database } from '../postgres/database.ts'
import type { Reader } from '../postgres/reader.ts'
import { readReplica } from '../postgres/replica-read.ts'
import { bind } from '../postgres/statements.ts'
import { connectionKey } from '../postgres/tokens.ts'
import { pagedLists } from '../schemas/lists.ts'
import { ProblemError, problem } from '../schemas/problem.ts'
import type { Filters, QueryPurpose } from '../schemas/request.ts'
import { type Caller, totalOfAll } from './connection.ts'
import type { Cursor } from './cursor.ts'
import { p, type Values } from './parameters.ts'
import { lookupQuery, type Query } from './response.ts'

/** Who reads, and from which connection. */
export interface ConnectionRequest {
  reader: Reader
  caller: Caller
  /** Called with the app that a read has found for the caller. */
  knowApp: (appId: string) => void
  /** SHA-256 of the connection token. */
  connectionHash: Buffer
}

/** Request for rows of a list. */
export interface ListRequest extends ConnectionRequest, Filters {
  purpose: QueryPurpose
  /** Only of changes. */
  since?: Cursor | undefined
  limit: number
  page: number
  /** True for HEAD: an export then needs its total, and no row. */
  isHead: boolean
}

/** First row of every response: app, connection, data version and number of rows. */
export interface Lookup {
  appId: string
  version: string
  /** Seconds since 1970 of the last refresh. */
  refreshed: string | null
  totalItems: number
  /** Values of the columns that the query has after LOOKUP_COLUMNS. */
  extra: (string | null)[]
}

export type Rows = Awaited<ReturnType<Database['read']>>

/** What a read has found: rows, and the state of the data that they come from. */
export interface Found {
  lookup: Lookup
  rows: Rows
}

/** What a list has for a response. */
export interface FoundList extends Found {
  /** Only of an export: the rows after `rows`, of the same version. */
  laterRows?: AsyncIterable<Rows>
  /** Only of changes. */
  changes?: {
    /** Identifiers of removed rows, as a list in JSON. */
    removed: string
    nextCursor: string
    hasMore: boolean
  }
}

export interface ListQueries {
  /** All statements that its requests run, besides lookupStatements. */
  statements: Record<string, Query>
  /**
   * @param known result of readLookup() for this request, if there was one
   * @throws Unavailable, or ProblemError 401, 404, 410
   */
  read(db: Database, request: ListRequest, known?: Found): Promise<FoundList>
}

const totals = pagedLists.map(({ table }) => sql`when ${sql.lit(table)} then ${totalOfAll(table)}`)

/** Reads the version, and the number of all rows of a list. */
export const lookupStatements = lookupQuery({
  title: 'lookup',
  purpose: 'Reads version and total.',
  totalItems: sql`case ${p.table} ${sql.join(totals, sql` `)} end`,
})

/** Reads the lookup of a list without its rows. @throws Unavailable, or ProblemError 401, 404 */
export function readLookup(
  db: Database,
  table: string,
  request: ConnectionRequest,
): Promise<Found> {
  const { reader, caller } = request
  reader.recorder.read(lookupStatements[caller.method].title, 'primary')
  return readPrimary(db, lookupStatements, request, { table })
}

/**
 * Reads a lookup and rows in one snapshot, from a replica if it has the newest data.
 * @param known result of readLookup() for this request, if there was one
 */
export async function readRows(
  db: Database,
  table: string,
  query: Query,
  request: ConnectionRequest,
  values: Values,
  known?: Found,
): Promise<Found> {
  const { reader, caller } = request
  const statement = query[caller.method]
  const parameters = bind(statement, withKeys(request, values))
  reader.recorder.read(statement.title, 'primary')
  const replicated = await readReplica(db, {
    statement,
    values: parameters,
    reader,
    readNewest: async () => {
      const newest = known ?? (await readPrimary(db, lookupStatements, request, { table }))
      return newest.lookup
    },
    accept: (rows, newest) => {
      const lookup = takeLookup(rows)
      const isNewest = lookup.appId === newest.appId && lookup.version === newest.version
      return isNewest ? { ...lookup, refreshed: newest.refreshed } : undefined
    },
  })
  if (replicated) return { lookup: replicated.found, rows: replicated.rows }
  const rows = await db.read(statement, parameters, reader)
  return { lookup: takeLookup(rows, request.knowApp), rows }
}

/** Reads from the primary. @throws Unavailable, or ProblemError 401, 404 */
export async function readPrimary(
  db: Database,
  query: Query,
  request: ConnectionRequest,
  values: Values,
): Promise<Found> {
  const statement = query[request.caller.method]
  const parameters = bind(statement, withKeys(request, values))
  const rows = await db.read(statement, parameters, request.reader)
  return { lookup: takeLookup(rows, request.knowApp), rows }
}

/** Authenticates a caller that gets no data, also after a disconnect: the quota counts it. @throws ProblemError 401 */
export async function authenticate(db: Database, request: ConnectionRequest): Promise<void> {
  const reader = request.reader.detached()
  try {
    await readPrimary(db, lookupStatements, { ...request, reader }, { table: null })
  } catch (error) {
    if (!(error instanceof ProblemError && error.code === 'connection_not_found')) throw error
  }
}

/** Adds the values that select the calling app and its connection. */
function withKeys({ caller, connectionHash }: ConnectionRequest, values: Values): Values {
  return {
    ...values,
    [caller.method]: caller.credential,
    connectionHash,
    connectionKey: connectionKey(connectionHash),
  }
}

/** Takes the lookup from the rows. @throws ProblemError 401 or 404; the app of a 404 is known, too */
function takeLookup(rows: Rows, knowApp?: (appId: string) => void): Lookup {
  const fields = rows.shift()
  if (fields === undefined) throw problem('invalid_token')
  const [appId, expired, connectionId, version, refreshed = null, totalItems, ...extra] = fields
  if (typeof appId !== 'string') throw new Error('the first row of a response is not its lookup')
  if (expired === 't') throw problem('expired_token')
  knowApp?.(appId)
  if (connectionId === null || typeof version !== 'string') throw problem('connection_not_found')
  return { appId, version, refreshed, totalItems: Number(totalItems ?? 0), extra }
}
