import type { FastifyReply, FastifyRequest } from 'fastify'
import { representationOf, sendResponse } from '../http/conditional-requests.ts'
import { tokenHash } from '../postgres/tokens.ts'
import { parseCursor } from '../queries/change-feed.ts'
import type { ListRequest } from '../queries/list-page.ts'
import type { ReadResponse } from '../queries/read-response.ts'
import type { TransactionTable } from '../queries/row-counts.ts'
import {
  type ConnectionParams,
  DEFAULT_LIMIT,
  DEFAULT_PAGE,
  type ListQuery,
  MAXIMUM_PAGE,
} from '../schemas/list.ts'
import type { ParameterError, ParameterErrorCode } from '../schemas/problem.ts'
import {
  connectionRequest,
  type ParameterRules,
  type RouteOptions,
  rejectParameters,
  schemaErrors,
} from './connection-request.ts'

/**
 * Creates the request for a page from the query parameters.
 * @param list its table, and the fingerprint of its response schemas, see schemaFingerprint()
 * @throws InvalidToken, ExpiredToken, or an HttpError that lists all invalid parameters
 */
export async function listRequest(
  options: RouteOptions,
  reply: FastifyReply,
  { table, fingerprint }: { table: TransactionTable; fingerprint: string },
): Promise<ListRequest> {
  const query = reply.request.query as ListQuery
  const { from, to } = query
  const errors = listErrors(reply.request, options.maximumLimit)
  // A repeated parameter is an array.
  const hasCursor = typeof query.since === 'string'
  const since = hasCursor ? cursorOf(reply.request, table) : undefined
  if (hasCursor) {
    errors.push(...excludedErrors(reply.request, NOT_WITH_SINCE, 'together with since'))
    if (since === undefined) {
      errors.push({ parameter: 'since', code: 'invalid_cursor', detail: SINCE_RULE })
    }
  }
  await rejectParameters(options, reply, errors)
  const limit = Number(query.limit ?? DEFAULT_LIMIT)
  const page = Number(query.page ?? DEFAULT_PAGE)
  const representation = representationOf(fingerprint, from, to, limit, page, query.since)
  const request = connectionRequest(options, reply, representation, limit)
  return { ...request, from, to, since, limit, page, version: query.version }
}

function cursorOf({ params, query }: FastifyRequest, table: TransactionTable) {
  const { since } = query as ListQuery
  return parseCursor(String(since), table, tokenHash((params as ConnectionParams).token))
}

/** The parameters of a page do not apply to changes. */
const NOT_WITH_SINCE = ['from', 'to', 'page', 'version']

/** Lists the parameters that a request must not have. */
export function excludedErrors(
  { url }: FastifyRequest,
  names: string[],
  place: string,
): ParameterError[] {
  // The validated query has the default of `page`.
  const given = new URLSearchParams(url.slice(url.indexOf('?')))
  return names
    .filter((parameter) => given.has(parameter))
    .map((parameter) => {
      const detail = `${parameter} cannot be used ${place}.`
      return { parameter, code: 'excluded_parameter', detail }
    })
}

const SINCE_RULE = 'since must be start, or a nextCursor of this list and connection.'

/** Sends a page with its links. */
export function sendPage(
  reply: FastifyReply,
  request: ListRequest,
  response: ReadResponse,
): FastifyReply {
  const links = linksOf(request, response)
  if (links !== undefined) reply.header('link', links)
  return sendResponse(reply, request, response)
}

/** Returns the Link header: other pages, or the first and the next page of changes. */
function linksOf(request: ListRequest, { body, meta, nextCursor }: ReadResponse) {
  if (body === undefined) return undefined
  if (request.since === undefined) return pageLinks(request, meta.totalItems)
  const first = `<?since=start&limit=${request.limit}>; rel="first"`
  if (nextCursor === undefined) return first
  return `${first}, <?since=${nextCursor}&limit=${request.limit}>; rel="next"`
}

/**
 * Returns the Link header of a page (RFC 8288, contract 23) with first, prev, next and last. On the
 * last page and after it, there is no `next`. Targets are relative: the path contains the connection
 * token, and proxies log headers (contract 21).
 */
function pageLinks({ from, to, limit, page, version }: ListRequest, totalItems: number): string {
  const last = Math.max(0, Math.ceil(totalItems / limit) - 1)
  const filter = `${from ? `from=${from}&` : ''}${to ? `to=${to}&` : ''}`
  const suffix = version ? `&version=${version}` : ''
  const pages = [
    ['first', 0],
    ['prev', page > 0 ? Math.min(page - 1, last) : undefined],
    ['next', page < last ? page + 1 : undefined],
    ['last', last],
  ] as const
  return pages
    .filter(([, number]) => number !== undefined)
    .map(([rel, number]) => `<?${filter}limit=${limit}&page=${number}${suffix}>; rel="${rel}"`)
    .join(', ')
}

function listRules(maximumLimit: number): ParameterRules {
  return {
    from: 'from must be a day that exists, as YYYY-MM-DD.',
    to: 'to must be a day that exists, as YYYY-MM-DD.',
    limit: `limit must be a whole number from 1 to ${maximumLimit}, in digits.`,
    page: `page must be a whole number from 0 to ${MAXIMUM_PAGE}, in digits.`,
    since: SINCE_RULE,
    version: 'version must be the Data-Version of an earlier response.',
  }
}

/** Lists all invalid parameters of a list: errors of the schema, then of the values. */
export function listErrors(request: FastifyRequest, maximumLimit: number): ParameterError[] {
  const query = request.query as ListQuery
  const rules = listRules(maximumLimit)
  const errors = schemaErrors(request, rules)
  const number = (name: 'limit' | 'page') => {
    const value = errors.some(({ parameter }) => parameter === name) ? undefined : query[name]
    return value === undefined ? Number.NaN : Number(value)
  }
  const report = (parameter: keyof ListQuery, code: ParameterErrorCode, detail?: string) =>
    errors.push({ parameter, code, detail: detail ?? String(rules[parameter]) })
  const limit = number('limit')
  if (limit < 1 || limit > maximumLimit) report('limit', 'out_of_range')
  if (number('page') > MAXIMUM_PAGE) report('page', 'out_of_range')
  const { from, to } = query
  const areDays = errors.every(({ parameter }) => parameter !== 'from' && parameter !== 'to')
  // Days in this format can be compared as text.
  if (areDays && from !== undefined && to !== undefined && from > to)
    report('from', 'invalid_range', 'from must not be after to.')
  return errors
}
