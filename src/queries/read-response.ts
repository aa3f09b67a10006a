import type { Readable } from 'node:stream'
import type { TObject } from '@sinclair/typebox'
import { type Expression, type RawBuilder, sql } from 'kysely'
import { type Frame, jsonArray } from '../json/response-body.ts'
import { columnsOf, compileRowWriter, type RowWriter } from '../json/row-writer.ts'
import type { MemoryReservation } from '../limits/response-memory.ts'
import type { Database } from '../postgres/database.ts'
import { ServerFailed } from '../postgres/errors.ts'
import { compile, type Parameter, type Statement } from '../postgres/statements.ts'
import { columnOf, exactDecimals } from '../schemas/fields.ts'
import {
  type AuthMethod,
  authMethodOf,
  type Caller,
  callerParameter,
  DataChanged,
  forEachAuthMethod,
} from './caller.ts'
import {
  changesOf,
  keyParameter,
  LOOKUP_COLUMNS,
  type Lookup,
  type LookupColumns,
  lookupStatements,
  takeLookup,
} from './connection.ts'

/** Request for data of one connection. The route makes it, and passes it down to the SQL. */
export interface ConnectionRequest {
  caller: Caller
  /** SHA-256 of the connection's token, and the key of the connection. */
  tokenHash: Buffer
  connectionKey: string
  /** Media type of the response. */
  mediaType: string
  /** True if decimals are JSON strings in the response. */
  exact: boolean
  /** Digest of the route's fields, the query and the media type. The ETag consists of it and the data version. */
  representation: string
  /** Data version that the response must have; undefined: any. */
  version?: string | undefined
  /** Data versions that the client has of this representation; `*` matches any. */
  knownVersions: string[]
  /** Number of changes that the client has, see changesOf(). With the same number, there are no rows. */
  knownChanges?: string | undefined
  /** Memory of the response. It ends when the client disconnects. */
  reservation: MemoryReservation
}

export interface ReadResponse {
  meta: Lookup & { items: number }
  /** Cursor of the next page of changes, if there is one. */
  nextCursor?: string | undefined
  /** Undefined if the client has this version. */
  body: Buffer | Readable | undefined
}

/** Statements of each authentication method, and the writers of their rows. */
export interface ResponseQuery {
  statements: Record<AuthMethod, Statement>
  /** Statements that read only the lookup. */
  lookups: Record<AuthMethod, Statement>
  writer: RowWriter
  /** Writes decimals as JSON strings. */
  exactWriter: RowWriter
  /** Number of columns between those of the lookup and of the item. */
  extraColumns: number
}

/**
 * Compiles one statement per authentication method. One statement is one snapshot. Its first row is the
 * lookup. The other rows have nulls in the columns of the lookup, so that PostgreSQL sends it only
 * once.
 */
export function responseQuery(query: {
  /** Unique among the statements of the service. */
  name: string
  table: string
  /** Schema of a row. Each field is a column. */
  item: TObject
  /** Columns of the lookup after LOOKUP_COLUMNS. */
  columns?: readonly string[]
  lookup: (method: AuthMethod) => Expression<LookupColumns>
  /** Statements that read only the lookup; by default, without a number of rows. */
  lookups?: Record<AuthMethod, Statement>
  /** Conditions on the rows `t` of the connection, their order and limit. It may use `lookup`. */
  rows: RawBuilder<unknown>
}): ResponseQuery {
  const fields = columnsOf(query.item).map(({ name }) => sql.ref(`t.${columnOf(name)}`))
  const nulls = (columns: readonly unknown[]) => sql.join(columns.map(() => sql`null`))
  const columns = [...LOOKUP_COLUMNS, ...(query.columns ?? [])]
  const lookup = sql.join(columns.map((column) => sql.ref(`lookup.${column}`)))
  const statement = (method: AuthMethod) => sql`
    with lookup as materialized ${query.lookup(method)}
    select ${lookup}, ${nulls(fields)} from lookup
    union all
    select ${nulls(columns)}, rows.* from lookup cross join lateral (
      select ${sql.join(fields)} from ${sql.table(query.table)} t
      where t.connection_id = ${keyParameter} and lookup.connection_id is not null
        and ${query.rows}) as rows`
  return {
    statements: forEachAuthMethod((method) =>
      compile(`${query.name} by ${method}`, statement(method)),
    ),
    lookups: query.lookups ?? lookupStatements,
    writer: compileRowWriter(query.item, columns.length),
    exactWriter: compileRowWriter(exactDecimals(query.item), columns.length),
    extraColumns: columns.length - LOOKUP_COLUMNS.length,
  }
}

type Rows = Awaited<ReturnType<Database['read']>>

/**
 * Reads the data in one snapshot and writes it as JSON, unless the client has this version.
 * @param values parameters from $4 on
 * @param frame JSON around the rows
 * @throws Unavailable, InvalidToken, ExpiredToken, ConnectionNotFound or DataChanged
 */
export function readResponse(
  db: Database,
  query: ResponseQuery,
  request: ConnectionRequest,
  values: Parameter[],
  frame: (lookup: Lookup) => Frame,
): Promise<ReadResponse> {
  const writer = request.exact ? query.exactWriter : query.writer
  return respond(db, query, request, values, (lookup) => {
    const framed = frame(lookup)
    return (rows) => jsonArray(rows, writer, framed, request.reservation)
  })
}

/**
 * Reads the data in one snapshot, unless the client has this version.
 * @param write checks the lookup, and returns a function that writes the rows
 */
export async function respond(
  db: Database,
  query: ResponseQuery,
  request: ConnectionRequest,
  values: Parameter[],
  write: (lookup: Lookup) => (rows: Rows) => Buffer | Readable,
): Promise<ReadResponse> {
  const { lookup, rows } = await readRows(db, query, request, values)
  if (rows === undefined) return notModified(lookup)
  const meta = { ...lookup, items: rows.count }
  const body = write(lookup)
  if (!request.knownVersions.includes('*')) return { meta, body: body(rows) }
  // `*` does not show that the cursor is valid. An error would come first (RFC 9110, section 13.2.1).
  rows.discard()
  return notModified(lookup)
}

const notModified = (lookup: Lookup): ReadResponse => ({
  meta: { ...lookup, items: 0 },
  body: undefined,
})

interface ReadRows {
  lookup: Lookup
  /** Undefined if the client has this version. */
  rows: Rows | undefined
}

/** Reads the rows. See respond(). */
export async function readRows(
  db: Database,
  { statements, lookups, extraColumns }: ResponseQuery,
  request: ConnectionRequest,
  values: Parameter[],
): Promise<ReadRows> {
  const { caller, reservation, knownVersions, knownChanges, version } = request
  const expected = (lookup: Lookup) => {
    if (version !== undefined && version !== lookup.version) throw new DataChanged(lookup.appId)
    return lookup
  }
  const keys = [callerParameter(caller), request.tokenHash, request.connectionKey]
  const method = authMethodOf(caller)
  const readLookup = async (): Promise<ReadRows> => {
    const rows = await db.read(lookups[method], keys, undefined, reservation)
    return { lookup: expected(takeLookup(rows)), rows }
  }

  const isKnown = knownVersions.length > 0 && !knownVersions.includes('*')
  const known = isKnown || knownChanges !== undefined ? await readLookup() : undefined
  if (known && knownVersions.includes(known.lookup.version)) return { ...known, rows: undefined }
  // No rows follow the lookup.
  if (known && changesOf(known.lookup) === knownChanges) return known
  const read = (from: Pick<Database, 'read'>) =>
    from.read(statements[method], [...keys, ...values], reservation)
  const replica = db.replica(request.tokenHash)
  const replicated =
    replica && (await readReplica(read(replica), known ?? readLookup(), extraColumns))
  if (replicated) return replicated
  const rows = await read(db)
  return { lookup: expected(takeLookup(rows, extraColumns)), rows }
}

/**
 * Returns the rows of a replica if they have the data version of the primary. Revoked tokens and
 * deleted connections are therefore rejected at once. No client gets an earlier state. A lagging
 * replica only costs a second read.
 * @returns undefined if the replica failed or has another version
 */
async function readReplica(
  reading: ReturnType<Database['read']>,
  primary: ReadRows | Promise<ReadRows>,
  extraColumns: number,
) {
  const settled = reading.catch((error: unknown) => {
    if (error instanceof ServerFailed) return undefined
    throw error
  })
  // Prevents an unhandled rejection if the primary rejects the request first.
  settled.catch(() => {})
  const { lookup: current } = await primary
  const rows = await settled
  if (rows === undefined) return undefined
  const lookup = lookupOf(rows, extraColumns)
  if (lookup?.appId === current.appId && lookup.version === current.version) return { lookup, rows }
  rows.discard()
  return undefined
}

/** A lagging replica may reject a request that the primary accepts. */
function lookupOf(...read: Parameters<typeof takeLookup>): Lookup | undefined {
  try {
    return takeLookup(...read)
  } catch {
    return undefined
  }
}
