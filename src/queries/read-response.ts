import type { Readable } from 'node:stream'
import type { TObject } from '@sinclair/typebox'
import { type Expression, type RawBuilder, sql } from 'kysely'
import { type Frame, jsonArray } from '../json/response-body.ts'
import { columnsOf, compileRowWriter, type RowWriter } from '../json/row-writer.ts'
import type { ReadContext } from '../limits/context.ts'
import type { Database } from '../postgres/database.ts'
import { compile, type Parameter, type Statement } from '../postgres/statements.ts'
import { columnOf, exactDecimals } from '../schemas/fields.ts'
import { problem } from '../schemas/problem.ts'
import { type AuthMethod, type Caller, forEachAuthMethod } from './caller.ts'
import {
  keyParameter,
  LOOKUP_COLUMNS,
  type Lookup,
  type LookupColumns,
  lookupStatements,
  takeLookup,
} from './connection.ts'

/** Request for data of one connection. The route makes it, and passes it down to the SQL. */
export interface ConnectionRequest {
  context: ReadContext
  caller: Caller
  tokenHash: Buffer
  connectionKey: string
  mediaType: string
  /** True if decimals are JSON strings in the response. */
  exact: boolean
  /** Digest of the route's fields, the query and the media type. The ETag consists of it and the data version. */
  representation: string
  /** Data version that the response must have; undefined: any. */
  version?: string | undefined
  /** Data versions that the client has of this representation; `*` matches any. */
  knownVersions: string[]
  /** Version of which the client has all rows. With the same version, there are no rows. */
  copied?: string | undefined
}

export interface ReadResponse {
  meta: Lookup & { items: number }
  nextCursor?: string | undefined
  /** Undefined if the client has this version. */
  body: Buffer | Readable | undefined
}

export interface ResponseQuery {
  statements: Record<AuthMethod, Statement>
  lookups: Record<AuthMethod, Statement>
  writer: RowWriter
  exactWriter: RowWriter
  extraColumns: number
}

/**
 * Compiles one statement per authentication method. One statement is one snapshot. Its first row is the lookup. The
 * other rows have nulls in the columns of the lookup, so that PostgreSQL sends it only once.
 */
export function responseQuery(query: {
  name: string
  purpose: string
  table: string
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
      compile(`${query.name} by ${method}`, query.purpose, statement(method)),
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
 * @param frame checks the lookup, and returns the JSON around the rows
 * @throws Unavailable, or ProblemError 401, 404, 412
 */
export async function readResponse(
  db: Database,
  query: ResponseQuery,
  request: ConnectionRequest,
  values: Parameter[],
  frame: (lookup: Lookup) => Frame,
): Promise<ReadResponse> {
  const { lookup, rows } = await readRows(db, query, request, values)
  if (rows === undefined) return notModified(lookup)
  const framed = frame(lookup)
  // `*` does not show that the cursor is valid. An error would come first (RFC 9110, section 13.2.1).
  if (request.knownVersions.includes('*')) return notModified(lookup, rows)
  const items = rows.count
  const writer = request.exact ? query.exactWriter : query.writer
  return { meta: { ...lookup, items }, body: jsonArray(rows, writer, framed, request.context) }
}

export function notModified(lookup: Lookup, rows?: Rows): ReadResponse {
  rows?.discard()
  return { meta: { ...lookup, items: 0 }, body: undefined }
}

interface ReadRows {
  lookup: Lookup
  /** Undefined if the client has this version. */
  rows: Rows | undefined
}

/** Reads the rows in one snapshot, unless the client has this version. See readResponse(). */
export async function readRows(
  db: Database,
  query: ResponseQuery,
  request: ConnectionRequest,
  values: Parameter[],
): Promise<ReadRows> {
  const { context, caller, knownVersions, copied } = request
  const keys = [caller.credential, request.tokenHash, request.connectionKey]
  const statement = query.statements[caller.method]
  context.statement = statement.title
  context.server = 'primary'
  let known: ReadRows | undefined
  if (copied !== undefined || (knownVersions.length > 0 && knownVersions[0] !== '*')) {
    known = await readLookup(db, query, request, keys)
    if (knownVersions.includes(known.lookup.version)) return { ...known, rows: undefined }
    if (known.lookup.version === copied) return known
  }
  const replica = db.replica?.(request.tokenHash)
  if (replica) {
    const reading = replica.read(statement, [...keys, ...values], context)
    const primary = known ?? readLookup(db, query, request, keys)
    const replicated = await readReplica(reading, primary, query.extraColumns)
    if (replicated) {
      context.server = replica.name
      return replicated
    }
  }
  const rows = await db.read(statement, [...keys, ...values], context)
  const lookup = takeLookup(rows, context, query.extraColumns)
  if (request.version !== undefined) expectVersion(lookup, request)
  return { lookup, rows }
}

async function readLookup(
  db: Database,
  { lookups }: ResponseQuery,
  request: ConnectionRequest,
  keys: Parameter[],
) {
  const { caller, context } = request
  const rows = await db.read(lookups[caller.method], keys, context)
  const lookup = takeLookup(rows, context)
  expectVersion(lookup, request)
  return { lookup, rows }
}

function expectVersion(lookup: Lookup, { version }: ConnectionRequest): void {
  if (version !== undefined && version !== lookup.version) throw problem('data_changed')
}

/**
 * Returns the rows of a replica if they have the data version of the primary. Revoked tokens and deleted connections
 * are therefore rejected at once. No client gets an earlier state. A lagging replica only costs a second read.
 * @returns undefined if the replica failed or has another version
 */
async function readReplica(
  reading: Promise<Rows | undefined>,
  primary: ReadRows | Promise<ReadRows>,
  extraColumns: number,
) {
  // Prevents an unhandled rejection if the primary rejects the request first.
  reading.catch(() => {})
  const { lookup: current } = await primary
  const rows = await reading
  if (rows === undefined) return undefined
  try {
    const lookup = takeLookup(rows, { confirm: () => {} }, extraColumns)
    if (lookup.appId === current.appId && lookup.version === current.version)
      return { lookup: { ...lookup, refreshed: current.refreshed }, rows }
  } catch {
    // A lagging replica may reject a request that the primary accepts.
  }
  rows.discard()
  return undefined
}
