import { type Body, bodyOf, type Frame } from '../json/response-body.ts'
import type { RowWriter } from '../json/row-writer.ts'
import type { Database, Replica } from '../postgres/database.ts'
import type { Reader } from '../postgres/reader.ts'
import { bind } from '../postgres/statements.ts'
import { connectionKey } from '../postgres/tokens.ts'
import type { Format } from '../schemas/list.ts'
import { ProblemError, problem } from '../schemas/problem.ts'
import type { Caller } from './connection.ts'
import type { Values } from './parameters.ts'
import { lookupStatements, type ResponseQuery } from './response.ts'

export type { Body }

export type KnowApp = (appId: string) => void

/** Request for rows of one connection. The route makes it, and passes it down to the SQL. */
export interface ListRequest {
  reader: Reader
  caller: Caller
  /** Called with the app that a read has found for the caller. */
  knowApp: KnowApp
  /** SHA-256 of the connection token. */
  connectionHash: Buffer
  format: Format
  from?: string | undefined
  to?: string | undefined
  since?: Cursor | undefined
  limit: number
  page: number
  /** Data version that the response must have; undefined: any. */
  version?: string | undefined
  /** Data versions that the client has of this representation; `*` matches any. */
  knownVersions: string[]
}

/** Position of a client in the changes of a list. */
export interface Cursor {
  /** Change number of the last change that the client has; 0: none. */
  number: bigint
  /** Version at the start of the copy, without its time. Earlier removals do not concern the client. */
  start: number
  /** Newest version that the client has seen. A connection that lost this version never has it again. */
  version: string
}

/** First row of every response: app, connection, data version and number of rows. */
export interface Lookup {
  appId: string
  version: string
  /** Seconds since 1970 of the last refresh. */
  refreshed: string | null
  totalItems: number
  extra: (string | null)[]
}

export interface ReadResponse {
  lookup: Lookup
  items: number
  nextCursor?: string | undefined
  /** Undefined if the client has this version. */
  body: Body | undefined
}

export interface ListReader {
  queries: Record<string, ResponseQuery>
  /** Formats of its responses. */
  formats: readonly Format[]
  /** Rows that it reads at once; 0 if their number is not known before. */
  limitOf(format: Format, pageSize: number, method: string): number
  /** @throws Unavailable, or ProblemError 401, 404, 410, 412 */
  read(db: Database, request: ListRequest): Promise<ReadResponse>
}

export type Rows = Awaited<ReturnType<Database['read']>>

interface ReadRows {
  lookup: Lookup
  rows: Rows | undefined
}

/** Writes the body of the rows, unless the client has this version or any. */
export function responseOf(
  { lookup, rows }: ReadRows,
  { reader, knownVersions }: ListRequest,
  writer: RowWriter,
  frame: Frame,
): ReadResponse {
  if (rows && !knownVersions.includes('*'))
    return { lookup, items: rows.count, body: bodyOf(rows, writer, frame, reader.memory) }
  rows?.discard()
  return { lookup, items: 0, body: undefined }
}

/** Reads rows in one snapshot. @param copied version of which the client has all rows */
export async function readRows(
  db: Database,
  query: ResponseQuery,
  request: ListRequest,
  values: Values,
  copied?: string,
): Promise<ReadRows> {
  const { reader, caller, connectionHash, knownVersions, knowApp } = request
  const statement = query.statements[caller.method]
  const parameters = bind(statement, { ...keysOf(caller, connectionHash), ...values })
  reader.recorder.read(statement.title, 'primary')
  let known: ReadRows | undefined
  if (copied !== undefined || (knownVersions.length > 0 && knownVersions[0] !== '*')) {
    known = await readLookup(db, query.table, request)
    if (knownVersions.includes(known.lookup.version)) return { ...known, rows: undefined }
    if (known.lookup.version === copied) return known
  }
  const replica = db.replica?.()
  if (replica) {
    const reading = replica.read(statement, parameters, reader)
    const primary = known ?? readLookup(db, query.table, request)
    const replicated = await readReplica(reading, primary, replica)
    if (replicated) {
      reader.recorder.read(statement.title, replica.name)
      return replicated
    }
  }
  const rows = await db.read(statement, parameters, reader)
  const lookup = takeLookup(rows, knowApp)
  if (request.version !== undefined) requireVersion(lookup, request)
  return { lookup, rows }
}

async function readLookup(db: Database, table: string, request: ListRequest) {
  const { caller, connectionHash, reader, knowApp } = request
  const statement = lookupStatements[caller.method]
  const values = { ...keysOf(caller, connectionHash), table }
  const rows = await db.read(statement, bind(statement, values), reader)
  const lookup = takeLookup(rows, knowApp)
  requireVersion(lookup, request)
  return { lookup, rows }
}

/** Values that select the calling app and its connection. */
function keysOf({ method, credential }: Caller, connectionHash: Buffer): Values {
  return {
    [method]: credential,
    connectionHash,
    connectionKey: connectionKey(connectionHash),
  }
}

function requireVersion(lookup: Lookup, { version }: ListRequest): void {
  if (version !== undefined && version !== lookup.version) throw problem('data_changed')
}

/**
 * Returns the rows of a replica if they have the data version of the primary. Revoked tokens and deleted connections
 * are therefore rejected at once. A lagging replica only costs a second read.
 */
async function readReplica(
  reading: Promise<Rows | undefined>,
  primary: ReadRows | Promise<ReadRows>,
  replica: Replica,
) {
  // Prevents an unhandled rejection if the primary rejects the request first.
  reading.catch(() => {})
  const { lookup: current } = await primary
  const rows = await reading
  if (rows === undefined) return undefined
  try {
    const lookup = takeLookup(rows)
    if (lookup.appId === current.appId && lookup.version === current.version) {
      replica.compared(true)
      return { lookup: { ...lookup, refreshed: current.refreshed }, rows }
    }
  } catch {
    // A lagging replica may reject a request that the primary accepts.
  }
  replica.compared(false)
  rows.discard()
  return undefined
}

/** Takes the lookup from the rows. @throws ProblemError 401 or 404; the app of a 404 is known, too */
function takeLookup(rows: Pick<Rows, 'shift'>, knowApp?: KnowApp): Lookup {
  const fields = rows.shift()
  if (fields === undefined) throw problem('invalid_token')
  const [appId, expired, connectionId, version, refreshed = null, totalItems, ...extra] = fields
  if (typeof appId !== 'string') throw new Error('the first row of a response is not its lookup')
  if (expired === 't') throw problem('expired_token')
  knowApp?.(appId)
  if (connectionId === null || typeof version !== 'string') throw problem('connection_not_found')
  return { appId, version, refreshed, totalItems: Number(totalItems ?? 0), extra }
}

/** Authenticates a caller that gets no data, also after a disconnect: the quota counts it. @throws ProblemError 401 */
export async function authenticate(
  db: Pick<Database, 'read'>,
  caller: Caller,
  connectionHash: Buffer,
  reader: Reader,
  knowApp: KnowApp,
): Promise<void> {
  const statement = lookupStatements[caller.method]
  const values = { ...keysOf(caller, connectionHash), table: null }
  const rows = await db.read(statement, bind(statement, values), reader.detached())
  try {
    takeLookup(rows, knowApp)
  } catch (error) {
    if (!(error instanceof ProblemError && error.code === 'connection_not_found')) throw error
  }
}
