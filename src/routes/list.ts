import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { TSchema } from '@sinclair/typebox'
import type { FastifyReply, FastifyRequest, FastifySchema } from 'fastify'
import {
  type ParameterRules,
  parameterErrors,
  type QueryPurpose,
} from '../http/parameter-errors.ts'
import type { Quota } from '../http/quota.ts'
import { knownVersions, negotiate, representationOf, sendResponse } from '../http/representation.ts'
import type { Database } from '../postgres/database.ts'
import { tokenHash } from '../postgres/tokens.ts'
import { parseCursor } from '../queries/changes.ts'
import type { Caller } from '../queries/connection.ts'
import {
  authenticate,
  type ListReader,
  type ListRequest,
  type ReadResponse,
} from '../queries/read.ts'
import { DEFAULT_LIMIT, DEFAULT_PAGE, EXPORTS, type ListDefinition } from '../schemas/list.ts'
import { MAX_PARAMETER_ERRORS, type ParameterError, problem } from '../schemas/problem.ts'
import type { ConnectionParams, PageQuery, RequestHeaders } from '../schemas/request.ts'

export interface RouteOptions {
  db: Database
  maximumLimit: number
  quota: Quota | undefined
}

/** What an endpoint accepts and returns. */
interface Endpoint {
  /** Path after /api/v1/queries. */
  url: string
  schema(maximumLimit: number): FastifySchema & {
    params: typeof ConnectionParams
    querystring: TSchema & { static: PageQuery }
    headers: typeof RequestHeaders
  }
  /** Rules of the query parameters that the schema cannot express. */
  rules(maximumLimit: number): ParameterRules
  /** Headers of a 200 besides those of every list. */
  headersOf?(
    name: string,
    request: ListRequest,
    read: ReadResponse,
  ): Record<string, string | number>
}

/** A list of the API: its rows in the database, what reads them, and its route. */
export interface ListRoute {
  list: ListDefinition
  reader: ListReader
  /** Path after /api/v1/queries. */
  url: string
  route: FastifyPluginAsyncTypebox<RouteOptions>
}

/** Makes the route of a list. Its handler is the list of its checks, in the order of their statuses. */
export function list(list: ListDefinition, listReader: ListReader, endpoint: Endpoint): ListRoute {
  const { name, table } = list
  const route: FastifyPluginAsyncTypebox<RouteOptions> = async (app, options) => {
    const { db, maximumLimit } = options
    const schema = endpoint.schema(maximumLimit)
    const rules = endpoint.rules(maximumLimit)
    // 401 comes before 400, and only PostgreSQL knows the caller: the handler reports the errors of the schema.
    app.get(endpoint.url, { schema, attachValidation: true }, async (request, reply) => {
      const { headers, method, params, query, reader, validationError } = request
      // The hook onRequest has read it.
      const caller = request.caller as Caller
      const knowApp = (appId: string) => request.knowApp(appId)
      const connectionHash = tokenHash(params.token)
      const authenticateOnce = once(() => authenticate(db, caller, connectionHash, reader, knowApp))

      const format = negotiate(headers.accept, listReader.formats)
      const purpose = purposeOf(query, EXPORTS.has(format))
      const { from, to, since, version } = query
      const cursor =
        purpose === 'changes' ? parseCursor(String(since), table, connectionHash) : undefined
      const errors = parameterErrors(rules, {
        query,
        schemaErrors: validationError?.validation ?? [],
        purpose,
        hasValidCursor: cursor !== undefined,
      })

      // 401 or 429
      if (options.quota) await chargeQuota(options.quota, reply, authenticateOnce)
      // 401 or 400
      if (errors.length > 0) await rejectParameters(request, errors, authenticateOnce)

      const pageSize = Number(query.limit ?? DEFAULT_LIMIT)
      const page = Number(query.page ?? DEFAULT_PAGE)
      const limit = listReader.limitOf(format, pageSize, method)
      reader.expectRows(limit, limit * page)
      const representation = representationOf(name, format, from, to, pageSize, page, since)
      const listRequest: ListRequest = {
        reader,
        caller,
        knowApp,
        connectionHash,
        format,
        from,
        to,
        since: cursor,
        limit,
        page,
        version,
        knownVersions: knownVersions(headers['if-none-match'], representation),
      }
      // 401, 404, 410 or 412
      const read = await listReader.read(db, listRequest)
      if (read.body !== undefined && endpoint.headersOf)
        reply.headers(endpoint.headersOf(name, listRequest, read))
      // 200 or 304
      return sendResponse(reply, representation, format, read)
    })
  }
  return { list, reader: listReader, url: endpoint.url, route }
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
  const some = `Some query parameters are invalid: \`errors\` lists the first ${listed.length} of ${errors.length}.`
  const detail = errors.length > listed.length ? some : undefined
  throw problem('invalid_request', { detail, errors: listed })
}
