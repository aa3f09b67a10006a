import type { FastifyInstance, FastifyReply } from 'fastify'
import type { Quota } from '../http/quota.ts'
import { knownVersions, negotiate, representationOf, sendResponse } from '../http/representation.ts'
import type { Caller } from '../limits/context.ts'
import type { Database } from '../postgres/database.ts'
import { tokenHash } from '../postgres/tokens.ts'
import { parseCursor } from '../queries/changes.ts'
import { EXPORT_PAGE, pagedList } from '../queries/pages.ts'
import { authenticate, type ListRequest, type ReadResponse } from '../queries/read.ts'
import { completedOrders } from '../queries/transfer-orders.ts'
import {
  type ConnectionParams,
  EXPORTS,
  type Format,
  type ListDefinition,
  listParameters,
  MEDIA_TYPES,
  querySchema,
} from '../schemas/list.ts'
import { MAX_PARAMETER_ERRORS, type ParameterError, problem } from '../schemas/problem.ts'
import { parseQuery } from './query.ts'

export interface RouteOptions {
  db: Database
  maximumLimit: number
  quota: Quota | undefined
}

const PAGED_FORMATS = Object.keys(MEDIA_TYPES) as Format[]
const ARRAY_FORMATS: Format[] = ['json', 'exactJson']

/** Makes the endpoint of a list: its parameters, its statements and its responses. */
export function list(definition: ListDefinition) {
  const { name, table, path, operationId, tag, summary, description, response, paged } = definition
  const reader = paged ? pagedList(definition) : completedOrders(definition)
  const formats = paged ? PAGED_FORMATS : ARRAY_FORMATS
  return async (app: FastifyInstance, options: RouteOptions): Promise<void> => {
    const parameters = paged ? listParameters(options.maximumLimit) : {}
    const schema = {
      operationId,
      tags: [tag],
      summary,
      description,
      querystring: querySchema(parameters),
      response: { 200: response },
    }
    app.get(path, { schema, attachValidation: true }, async (request, reply) => {
      const { context, headers, method } = request
      const hash = tokenHash((request.params as ConnectionParams).token)
      const format = negotiate(headers.accept, formats)
      const query = parseQuery(request, parameters, format, (text) =>
        parseCursor(text, table, hash),
      )
      await admit(options, reply, query.errors)
      // HEAD of an export needs its total only.
      const exported = method === 'HEAD' ? 0 : EXPORT_PAGE
      const limit = EXPORTS.has(format) ? exported : paged ? query.limit : 0
      context.memory.expect(limit, limit * query.page)
      const { from, to, page, since, version } = query
      const representation = representationOf(name, format, from, to, query.limit, page, since)
      const listRequest: ListRequest = {
        ...{ context, format, from, to, limit, page, version },
        caller: context.caller as Caller,
        tokenHash: hash,
        since: query.cursor,
        knownVersions: knownVersions(headers['if-none-match'], representation),
      }
      const read = await reader.read(options.db, listRequest)
      if (read.body !== undefined && paged)
        reply.headers(listHeaders(definition, listRequest, read))
      return sendResponse(reply, representation, format, read)
    })
  }
}

/** Headers that only pages, changes and exports have. */
function listHeaders(
  { name }: ListDefinition,
  request: ListRequest,
  { lookup, nextCursor }: ReadResponse,
): Record<string, string | number> {
  const { format, from, to, limit, since } = request
  if (EXPORTS.has(format)) {
    const file = [name, from && `from-${from}`, to && `to-${to}`].filter(Boolean).join('-')
    return {
      'x-total-count': lookup.totalItems,
      'content-disposition': `attachment; filename="${file}.${format === 'csv' ? 'csv' : 'ndjson'}"`,
    }
  }
  if (since === undefined) return { link: pageLinks(request, lookup.totalItems) }
  const next = nextCursor && `, <?since=${nextCursor}&limit=${limit}>; rel="next"`
  return { link: `<?since=start&limit=${limit}>; rel="first"${next ?? ''}` }
}

/**
 * Returns the Link header of a page (RFC 8288, contract 23) with first, prev, next and last. On the
 * last page and after it, there is no `next`. Targets are relative: the path contains the connection
 * token, and proxies log headers (contract 21).
 */
function pageLinks({ from, to, limit, page, version }: ListRequest, totalItems: number): string {
  const last = Math.max(0, Math.ceil(totalItems / limit) - 1)
  const start = `<?${from ? `from=${from}&` : ''}${to ? `to=${to}&` : ''}limit=${limit}&page=`
  const end = `${version ? `&version=${version}` : ''}>; rel=`
  let links = `${start}0${end}"first"`
  if (page > 0) links += `, ${start}${Math.min(page - 1, last)}${end}"prev"`
  if (page < last) links += `, ${start}${page + 1}${end}"next"`
  return `${links}, ${start}${last}${end}"last"`
}

/**
 * Counts the request in the quota of its app, then rejects invalid parameters. A read authenticates the caller before
 * a response without data, and before the quota if its app is unknown (contract 1).
 * @throws ProblemError 401, 429, or 400 that lists the errors
 */
async function admit(
  { db, quota }: RouteOptions,
  reply: FastifyReply,
  errors: ParameterError[],
): Promise<void> {
  if (quota === undefined && errors.length === 0) return
  const { context, params } = reply.request
  const hash = tokenHash((params as ConnectionParams).token)
  const authenticated = () => authenticate(db, context.caller as Caller, hash, context)
  const { appId } = context.tenant
  if (appId === undefined) await authenticated()
  else context.appId = appId
  try {
    await quota?.charge(reply)
  } catch (error) {
    if (appId !== undefined) await authenticated()
    throw error
  }
  if (errors.length === 0) return
  if (appId !== undefined) await authenticated()
  const listed = errors.slice(0, MAX_PARAMETER_ERRORS)
  const some = `Some query parameters are invalid: \`errors\` lists the first ${listed.length} of ${errors.length}.`
  const detail = errors.length > listed.length ? some : undefined
  throw problem('invalid_request', { detail, errors: listed })
}
