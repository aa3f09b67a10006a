import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { TSchema } from '@sinclair/typebox'
import type { FastifyReply, FastifyRequest, FastifySchema } from 'fastify'
import type { BodyWriter } from '../http/list-body.ts'
import { sendList, sendNotModified } from '../http/list-response.ts'
import { negotiate } from '../http/negotiation.ts'
import type { HeaderWriter } from '../http/page-headers.ts'
import { type ParameterRules, parameterCheck, summaryOf } from '../http/parameter-errors.ts'
import { isKnown, knownVersions, mayBeKnown, representationOf } from '../http/preconditions.ts'
import type { Quota } from '../http/quota.ts'
import { rowWriters } from '../json/row-writer.ts'
import type { Database } from '../postgres/database.ts'
import { tokenHash } from '../postgres/tokens.ts'
import type { Caller } from '../queries/connection.ts'
import { parseCursor } from '../queries/cursor.ts'
import {
  authenticate,
  type ConnectionRequest,
  type Found,
  type ListQueries,
  type ListRequest,
  readLookup,
} from '../queries/read.ts'
import { DEFAULT_LIMIT, DEFAULT_PAGE, EXPORTS, type Format, type List } from '../schemas/list.ts'
import { MAX_PARAMETER_ERRORS, type ParameterError, problem } from '../schemas/problem.ts'
import {
  type ConnectionParams,
  filtersOf,
  type PageQuery,
  type QueryPurpose,
  type RequestHeaders,
} from '../schemas/request.ts'

export interface RouteOptions {
  db: Database
  /** Largest `limit`. */
  maximumLimit: number
  quota: Quota | undefined
}

/** What an endpoint accepts and returns. The settings of the service may change each part. */
interface Endpoint {
  /** Path after /api/v1/queries. */
  url: string
  schema(options: RouteOptions): FastifySchema & {
    params: typeof ConnectionParams
    querystring: TSchema & { static: PageQuery }
    headers: typeof RequestHeaders
  }
  /** Rules of the query parameters that the schema cannot express. */
  rules(options: RouteOptions): ParameterRules
  /** Formats of a response. */
  formats(options: RouteOptions): readonly Format[]
  /** Writes the body of a 200. */
  writeBody: BodyWriter
  /** Headers of a 200 besides those of every list. */
  headersOf?: HeaderWriter
}

/** A list of the API: its rows in the database, what reads them, and its route. */
export interface ListRoute {
  list: List
  queries: ListQueries
  /** Path after /api/v1/queries. */
  url: string
  route: FastifyPluginAsyncTypebox<RouteOptions>
}

/** Makes the route of a list. Its handler is the list of its checks, in the order of their statuses. */
export function list(list: List, queries: ListQueries, endpoint: Endpoint): ListRoute {
  const { name, table } = list
  const writers = rowWriters(list)
  const route: FastifyPluginAsyncTypebox<RouteOptions> = async (app, options) => {
    const { db, quota } = options
    const schema = endpoint.schema(options)
    const parameterErrors = parameterCheck(endpoint.rules(options))
    const formats = endpoint.formats(options)
    // 401 comes before 400, and only PostgreSQL knows the caller: the handler reports the errors of the schema.
    app.get(endpoint.url, { schema, attachValidation: true }, async (request, reply) => {
      const { headers, params, query, reader, memory, validationError } = request
      const connection: ConnectionRequest = {
        reader,
        // The hook onRequest has read it.
        caller: request.caller as Caller,
        knowApp: (appId) => request.knowApp(appId),
        connectionHash: tokenHash(params.token),
      }
      const authenticateOnce = once(() => authenticate(db, connection))

      const format = negotiate(headers.accept, formats)
      const purpose = purposeOf(query, EXPORTS.has(format))
      const { since, version } = query
      const isCursor = purpose === 'changes' && since !== undefined
      const cursor = isCursor ? parseCursor(since, table, connection.connectionHash) : undefined
      const errors = parameterErrors({
        query,
        schemaErrors: validationError?.validation ?? [],
        purpose,
        hasValidCursor: cursor !== undefined,
      })

      // 401 or 429
      if (quota) await chargeQuota(quota, reply, authenticateOnce)
      // 401 or 400
      if (errors.length > 0) await rejectParameters(request, errors, authenticateOnce)
      // 401 or 400
      if (purpose === 'export' && continuesDownload(request)) await rejectRange(authenticateOnce)

      const limit = Number(query.limit ?? DEFAULT_LIMIT)
      const page = Number(query.page ?? DEFAULT_PAGE)
      const filters = filtersOf(query)
      const selected = [...Object.values(filters), limit, page, since]
      const representation = representationOf(list, format, selected)
      const known = knownVersions(headers['if-none-match'], representation)
      const preconditions = { version, known }
      let newest: Found | undefined
      if (mayBeKnown(preconditions)) {
        // 401 or 404
        newest = await readLookup(db, table, connection)
        // 412 or 304
        if (isKnown(preconditions, newest.lookup.version))
          return sendNotModified(reply, { ...newest, format, representation })
      }

      const listRequest: ListRequest = {
        ...connection,
        ...filters,
        purpose,
        since: cursor,
        limit,
        page,
        isHead: request.method === 'HEAD',
      }
      // 401, 404 or 410
      const found = await queries.read(db, listRequest, newest)
      // 412 or 304
      if (isKnown(preconditions, found.lookup.version)) {
        found.rows.discard()
        return sendNotModified(reply, { ...found, format, representation })
      }
      // 200
      const writing = { memory, scheduler: app.writeScheduler, tenant: request.admission.tenant }
      const body = await endpoint.writeBody(found, listRequest, writers[format], writing)
      if (endpoint.headersOf)
        reply.headers(endpoint.headersOf({ name, format, request: listRequest, version, found }))
      return sendList(reply, { ...found, format, representation }, body)
    })
  }
  return { list, queries, url: endpoint.url, route }
}

function purposeOf({ since }: PageQuery, isExport: boolean): QueryPurpose {
  if (isExport) return 'export'
  // A repeated parameter is an array.
  return typeof since === 'string' ? 'changes' : 'page'
}

function once(authenticate: () => Promise<void>): () => Promise<void> {
  let authenticated: Promise<void> | undefined
  return () => {
    authenticated ??= authenticate()
    return authenticated
  }
}

/** Counts the request in the quota of its app, after a read of the app if it is not known. @throws ProblemError 401, 429 */
async function chargeQuota(
  quota: Quota,
  reply: FastifyReply,
  authenticateOnce: () => Promise<void>,
): Promise<void> {
  const { admission, recorder } = reply.request
  const { appId } = admission.tenant
  if (appId === undefined) await authenticateOnce()
  else recorder.identify(appId)
  try {
    await quota.charge(reply)
  } catch (error) {
    // A caller whose token was revoked gets 401 instead.
    await authenticateOnce()
    throw error
  }
}

/** @throws ProblemError 401, 400 */
async function rejectParameters(
  { admission, recorder }: Pick<FastifyRequest, 'admission' | 'recorder'>,
  errors: ParameterError[],
  authenticateOnce: () => Promise<void>,
): Promise<never> {
  const { appId } = admission.tenant
  if (appId !== undefined) recorder.identify(appId)
  await authenticateOnce()
  const listed = errors.slice(0, MAX_PARAMETER_ERRORS)
  throw problem('invalid_request', { detail: summaryOf(errors, listed.length), errors: listed })
}

/**
 * True if a client asks for the rest of a download that was cut, as GNU wget does by itself. It appends the response to the
 * first part without a look at its status, so a 200 would make a file of two states, with rows lost and doubled.
 */
function continuesDownload({ method, headers }: FastifyRequest): boolean {
  const { range = '', 'if-range': condition } = headers
  return method === 'GET' && condition === undefined && /^bytes=0*[1-9][0-9]*-$/i.test(range)
}

/** @throws ProblemError 401, 400 */
async function rejectRange(authenticateOnce: () => Promise<void>): Promise<never> {
  await authenticateOnce()
  const detail =
    'An export cannot be continued, because its data may have changed: delete the part that you have, and request it again.'
  throw problem('malformed_request', { detail })
}
