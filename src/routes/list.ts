import type { FastifyInstance, FastifyReply } from 'fastify'
import type { Quota } from '../http/quota.ts'
import { knownVersions, negotiate, representationOf, sendResponse } from '../http/representation.ts'
import type { Database } from '../postgres/database.ts'
import { tokenHash } from '../postgres/tokens.ts'
import { parseCursor } from '../queries/changes.ts'
import type { Caller } from '../queries/connection.ts'
import { EXPORT_PAGE, pagedList } from '../queries/pages.ts'
import { authenticate, type Cursor, type ListRequest, type ReadResponse } from '../queries/read.ts'
import { completedOrders } from '../queries/transfer-orders.ts'
import {
  type ConnectionParams,
  DEFAULT_LIMIT,
  DEFAULT_PAGE,
  EXPORTS,
  type Format,
  type ListDefinition,
  type ListParameters,
  type ListQuery,
  listParameters,
  MEDIA_TYPES,
} from '../schemas/list.ts'
import { MAX_PARAMETER_ERRORS, type ParameterError, problem } from '../schemas/problem.ts'

export interface RouteOptions {
  db: Database
  maximumLimit: number
  quota: Quota | undefined
}

const PAGED_FORMATS = Object.keys(MEDIA_TYPES) as Format[]
const ARRAY_FORMATS: Format[] = ['json', 'exactJson']

/** Makes the endpoint of a list: its parameters, its statements and its responses. */
export function list(definition: ListDefinition) {
  const { name, table, path, operationId, tag, summary, description, paged } = definition
  const listReader = paged ? pagedList(definition) : completedOrders(definition)
  const formats = paged ? PAGED_FORMATS : ARRAY_FORMATS
  return async (app: FastifyInstance, options: RouteOptions): Promise<void> => {
    const parameters = paged ? listParameters(options.maximumLimit) : {}
    const schema = { operationId, tags: [tag], summary, description }
    app.get(path, { schema }, async (request, reply) => {
      const { headers, method, params, reader } = request
      const connectionHash = tokenHash((params as ConnectionParams).token)
      const format = negotiate(headers.accept, formats)
      const isExport = EXPORTS.has(format)
      const query = request.query as ListQuery
      const { from, to, since, version } = query
      // A repeated parameter is an array.
      const isCursor = typeof since === 'string' && !isExport
      const cursor = isCursor ? parseCursor(since, table, connectionHash) : undefined
      const errors = parameterErrors(query, parameters, isExport, cursor)
      if (options.quota || errors.length > 0) await admit(options, reply, connectionHash, errors)
      const given = Number(query.limit ?? DEFAULT_LIMIT)
      const page = Number(query.page ?? DEFAULT_PAGE)
      // HEAD of an export needs its total only.
      const exported = method === 'HEAD' ? 0 : EXPORT_PAGE
      const limit = isExport ? exported : paged ? given : 0
      reader.expectRows(limit, limit * page)
      const representation = representationOf(name, format, from, to, given, page, since)
      const listRequest: ListRequest = {
        ...{ reader, format, from, to, limit, page, version },
        caller: request.caller as Caller,
        knowApp: (appId) => request.knowApp(appId),
        connectionHash,
        since: cursor,
        knownVersions: knownVersions(headers['if-none-match'], representation),
      }
      const read = await listReader.read(options.db, listRequest)
      if (read.body !== undefined && paged) reply.headers(listHeaders(name, listRequest, read))
      return sendResponse(reply, representation, format, read)
    })
  }
}

/** Headers that only pages, changes and exports have. */
function listHeaders(
  name: string,
  { format, from, to, limit, page, since, version }: ListRequest,
  { lookup: { totalItems }, nextCursor }: ReadResponse,
): Record<string, string | number> {
  if (EXPORTS.has(format)) {
    const file = [name, from && `from-${from}`, to && `to-${to}`].filter(Boolean).join('-')
    return {
      'x-total-count': totalItems,
      'content-disposition': `attachment; filename="${file}.${format === 'csv' ? 'csv' : 'ndjson'}"`,
    }
  }
  // Links (RFC 8288, contract 23) are relative: the path has the connection token, and proxies log headers (contract 21).
  if (since !== undefined) {
    const next = nextCursor && `, <?since=${nextCursor}&limit=${limit}>; rel="next"`
    return { link: `<?since=start&limit=${limit}>; rel="first"${next ?? ''}` }
  }
  const last = Math.max(0, Math.ceil(totalItems / limit) - 1)
  const start = `<?${from ? `from=${from}&` : ''}${to ? `to=${to}&` : ''}limit=${limit}&page=`
  const end = `${version ? `&version=${version}` : ''}>; rel=`
  let link = `${start}0${end}"first"`
  if (page > 0) link += `, ${start}${Math.min(page - 1, last)}${end}"prev"`
  if (page < last) link += `, ${start}${page + 1}${end}"next"`
  return { link: `${link}, ${start}${last}${end}"last"` }
}

/**
 * Counts the request in the quota, then rejects invalid parameters. A read authenticates the caller before a response
 * without data, and before the quota if its app is unknown (contract 1). @throws ProblemError 401, 429, 400
 */
async function admit(
  { db, quota }: RouteOptions,
  reply: FastifyReply,
  connectionHash: Buffer,
  errors: ParameterError[],
): Promise<void> {
  const { admission, caller, reader, recorder } = reply.request
  const knowApp = (appId: string) => reply.request.knowApp(appId)
  const authenticated = () => authenticate(db, caller as Caller, connectionHash, reader, knowApp)
  const { appId } = admission.tenant
  if (appId === undefined) await authenticated()
  else recorder.identify(appId)
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

/** Parameters that an export or a list of changes does not have. */
const NOT_IN_EXPORTS = { names: ['limit', 'page', 'since', 'version'], place: 'in an export' }
const NOT_WITH_SINCE = { names: ['from', 'to', 'page', 'version'], place: 'together with since' }

/** @param cursor undefined if `since` is none of this list and connection */
function parameterErrors(
  given: ListQuery,
  parameters: ListParameters,
  isExport: boolean,
  cursor: Cursor | undefined,
): ParameterError[] {
  const errors: ParameterError[] = []
  const add = (parameter: string, code: ParameterError['code'], detail = '') =>
    errors.push({ parameter, code, detail })
  const isValid = (name: string) => errors.every(({ parameter }) => parameter !== name)
  const names = Object.keys(parameters)
  const known = names.length > 0 ? `The parameters are ${names.join(', ')}.` : 'There are none.'
  for (const name of Object.keys(given))
    if (!names.includes(name))
      add(name, 'unknown_parameter', `There is no such parameter. ${known}`)
  for (const [name, { schema, rule }] of Object.entries(parameters)) {
    const value = given[name as keyof ListQuery]
    if (Array.isArray(value)) add(name, 'repeated_parameter', `${name} may be given only once.`)
    else if (value !== undefined) {
      const { pattern, format } = schema
      // JavaScript reads the 30th of February as a day in March.
      const isValid =
        (pattern === undefined || new RegExp(pattern).test(value)) &&
        (format !== 'date' || new Date(value).getUTCDate() === Number(value.slice(-2)))
      if (!isValid) add(name, 'invalid_format', rule)
    }
  }
  for (const [name, { range, rule }] of Object.entries(parameters)) {
    const value = Number(given[name as keyof ListQuery])
    if (range && (value < range[0] || value > range[1]) && isValid(name))
      add(name, 'out_of_range', rule)
  }
  const { from, to, since } = given
  // Days in this format can be compared as text.
  if (from !== undefined && to !== undefined && from > to && isValid('from') && isValid('to'))
    add('from', 'invalid_range', 'from must not be after to.')
  if (isExport) {
    const others = errors.filter(({ parameter }) => !NOT_IN_EXPORTS.names.includes(parameter))
    return [...excludedErrors(given, NOT_IN_EXPORTS), ...others]
  }
  if (typeof since !== 'string' || !parameters.since) return errors
  errors.push(...excludedErrors(given, NOT_WITH_SINCE))
  if (cursor === undefined) add('since', 'invalid_cursor', parameters.since.rule)
  return errors
}

const excludedErrors = (given: ListQuery, { names, place }: typeof NOT_IN_EXPORTS) =>
  names
    .filter((name) => Object.hasOwn(given, name))
    .map((parameter): ParameterError => {
      const detail = `${parameter} cannot be used ${place}.`
      return { parameter, code: 'excluded_parameter', detail }
    })
