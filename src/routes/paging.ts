import type { FastifyReply, FastifyRequest } from 'fastify'
import { representationOf, sendResponse } from '../http/conditional-requests.ts'
import { LIST_TYPES, negotiate } from '../http/media-types.ts'
import { parseCursor } from '../queries/change-feed.ts'
import { BLOCK_ROWS } from '../queries/export.ts'
import type { ListRequest } from '../queries/list-page.ts'
import type { ReadResponse } from '../queries/read-response.ts'
import type { TransactionTable } from '../queries/row-counts.ts'
import { DEFAULT_LIMIT, DEFAULT_PAGE, type ListQuery, MAXIMUM_PAGE } from '../schemas/list.ts'
import type { ParameterError } from '../schemas/problem.ts'
import { connectionHash, connectionRequest, schemaErrors } from './connection-request.ts'
import { EXPORT_FORMATS, type ExportFormat } from './export.ts'

/** A transaction list for its route. */
interface List {
  table: TransactionTable
  /** Of the response schemas of a page, and of the rows of an export, see schemaFingerprint(). */
  fingerprint: string
  exportFingerprint: string
}

interface ParsedList {
  list: ListRequest
  /** Export format; undefined for a page. */
  format: ExportFormat | undefined
  errors: ParameterError[]
}

/** Parses a request for a page or an export. With errors, the list must not be read. */
export function parseList(
  request: FastifyRequest,
  maximumLimit: number,
  { table, fingerprint, exportFingerprint }: List,
): ParsedList {
  const query = request.query as ListQuery
  const { from, to } = query
  const hash = connectionHash(request)
  const mediaType = negotiate(request.headers.accept, LIST_TYPES)
  const format = EXPORT_FORMATS[mediaType]
  const errors = listErrors(request, maximumLimit)
  if (format !== undefined) {
    const representation = representationOf(exportFingerprint, from, to)
    const base = connectionRequest(request, hash, mediaType, representation, BLOCK_ROWS)
    // HEAD needs the total only.
    const limit = request.method === 'HEAD' ? 0 : BLOCK_ROWS
    const list = { ...base, from, to, since: undefined, limit, page: 0 }
    const others = errors.filter(({ parameter }) => !NOT_IN_EXPORTS.includes(parameter))
    return {
      list,
      format,
      errors: [...excludedErrors(request, NOT_IN_EXPORTS, 'in an export'), ...others],
    }
  }
  // A repeated parameter is an array.
  const since = typeof query.since === 'string' ? parseCursor(query.since, table, hash) : undefined
  if (typeof query.since === 'string') {
    errors.push(...excludedErrors(request, NOT_WITH_SINCE, 'together with since'))
    if (since === undefined) {
      errors.push({ parameter: 'since', code: 'invalid_cursor', detail: SINCE_RULE })
    }
  }
  const limit = Number(query.limit ?? DEFAULT_LIMIT)
  const page = Number(query.page ?? DEFAULT_PAGE)
  const representation = representationOf(fingerprint, from, to, limit, page, query.since)
  const base = connectionRequest(request, hash, mediaType, representation, limit)
  return { list: { ...base, from, to, since, limit, page, version: query.version }, format, errors }
}

const NOT_IN_EXPORTS = ['limit', 'page', 'since', 'version']
/** The parameters of a page do not apply to changes. */
const NOT_WITH_SINCE = ['from', 'to', 'page', 'version']

/** Lists the parameters that a request must not have. */
function excludedErrors({ url }: FastifyRequest, names: string[], place: string): ParameterError[] {
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
  const start = `<?${from ? `from=${from}&` : ''}${to ? `to=${to}&` : ''}limit=${limit}&page=`
  const end = `${version ? `&version=${version}` : ''}>; rel=`
  let links = `${start}0${end}"first"`
  if (page > 0) links += `, ${start}${Math.min(page - 1, last)}${end}"prev"`
  if (page < last) links += `, ${start}${page + 1}${end}"next"`
  return `${links}, ${start}${last}${end}"last"`
}

function listRules(maximumLimit: number) {
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
function listErrors(request: FastifyRequest, maximumLimit: number): ParameterError[] {
  const { from, to, limit, page } = request.query as ListQuery
  const errors = schemaErrors(request, () => listRules(maximumLimit))
  const isValid = (...names: string[]) =>
    errors.length === 0 || errors.every(({ parameter }) => !names.includes(parameter))
  const report = (parameter: 'limit' | 'page') =>
    errors.push({ parameter, code: 'out_of_range', detail: listRules(maximumLimit)[parameter] })
  const rows = Number(limit ?? DEFAULT_LIMIT)
  if (isValid('limit') && (rows < 1 || rows > maximumLimit)) report('limit')
  if (isValid('page') && Number(page) > MAXIMUM_PAGE) report('page')
  // Days in this format can be compared as text.
  if (from !== undefined && to !== undefined && from > to && isValid('from', 'to')) {
    const detail = 'from must not be after to.'
    errors.push({ parameter: 'from', code: 'invalid_range', detail })
  }
  return errors
}
