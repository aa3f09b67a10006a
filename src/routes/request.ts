import type { Socket } from 'node:net'
import type { FastifyReply, FastifyRequest, FastifySchemaValidationError } from 'fastify'
import type { Quota } from '../http/quota.ts'
import {
  CSV,
  EXACT_NDJSON,
  isExact,
  JSON_TYPE,
  knownVersions,
  LIST_TYPES,
  NDJSON,
  negotiate,
  representationOf,
} from '../http/representation.ts'
import type { Database } from '../postgres/database.ts'
import { connectionKey, tokenHash } from '../postgres/tokens.ts'
import type { Caller } from '../queries/caller.ts'
import { parseCursor } from '../queries/change-feed.ts'
import { authenticate } from '../queries/connection.ts'
import type { ConnectionRequest } from '../queries/read-response.ts'
import type { TransactionTable } from '../queries/row-counts.ts'
import { BLOCK_ROWS, type ListRequest } from '../queries/transactions.ts'
import {
  type ConnectionParams,
  DEFAULT_LIMIT,
  DEFAULT_PAGE,
  type ListQuery,
  MAXIMUM_PAGE,
} from '../schemas/list.ts'
import { MAX_PARAMETER_ERRORS, type ParameterError, problem } from '../schemas/problem.ts'

export interface RouteOptions {
  db: Database
  maximumLimit: number
  quota: Quota | undefined
  /** Connections of exports over HTTP/1.0 that have not ended. */
  unfinished: Set<Socket>
}

/**
 * Creates the request object for the queries.
 * @param hash SHA-256 of the connection token
 * @param representation of the default media type, see representationOf()
 * @param rows maximum number of rows in the response
 * @param skipped number of rows before them
 */
export function connectionRequest(
  { context, headers }: FastifyRequest,
  hash: Buffer,
  mediaType: string,
  representation: string,
  rows: number,
  skipped = 0,
): ConnectionRequest {
  const { 'if-none-match': known, 'accept-encoding': acceptEncoding } = headers
  const isDefault = mediaType === JSON_TYPE
  const digest = isDefault ? representation : representationOf(representation, mediaType)
  context.memory.expect(rows, skipped)
  if (!context.memory.large) context.limits.scheduler.smallRequestAt = performance.now()
  context.keepsChunks = acceptEncoding !== undefined
  return {
    context,
    caller: context.caller as Caller,
    tokenHash: hash,
    connectionKey: connectionKey(hash),
    mediaType,
    exact: isExact(mediaType),
    representation: digest,
    knownVersions: knownVersions(known, digest),
  }
}

export type ParameterRules = Record<string, string>

/** Lists the errors of the schema validation, one per parameter. A query may have 3,000 of them. */
export function schemaErrors(
  { validationError }: FastifyRequest,
  rules: ParameterRules,
): ParameterError[] {
  const found: FastifySchemaValidationError[] = validationError?.validation ?? []
  if (found.length === 0) return []
  const names = Object.keys(rules)
  const known = names.length > 0 ? `The parameters are ${names.join(', ')}.` : 'There are none.'
  const unknown = `There is no such parameter. ${known}`
  const errors = new Map<string, ParameterError>()
  for (const each of found) {
    const error = schemaError(each, rules, unknown)
    errors.set(error.parameter, error)
  }
  return [...errors.values()]
}

function schemaError(
  { keyword, params, instancePath }: FastifySchemaValidationError,
  rules: ParameterRules,
  unknown: string,
): ParameterError {
  if (keyword === 'additionalProperties') {
    const parameter = String(params.additionalProperty)
    return { parameter, code: 'unknown_parameter', detail: unknown }
  }
  const parameter = instancePath.slice(1)
  return keyword === 'type'
    ? { parameter, code: 'repeated_parameter', detail: `${parameter} may be given only once.` }
    : { parameter, code: 'invalid_format', detail: String(rules[parameter]) }
}

export interface ExportFormat {
  rows: 'json' | 'exactJson' | 'csv'
  extension: string
}

/** Exports by media type. The other media types are those of pages. */
const EXPORT_FORMATS: Record<string, ExportFormat | undefined> = {
  [NDJSON]: { rows: 'json', extension: 'ndjson' },
  [EXACT_NDJSON]: { rows: 'exactJson', extension: 'ndjson' },
  [CSV]: { rows: 'csv', extension: 'csv' },
}

interface List {
  table: TransactionTable
  /** Of the response schemas of a page, and of the rows of an export, see schemaFingerprint(). */
  fingerprint: string
  exportFingerprint: string
}

interface ParsedList {
  list: ListRequest
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
  const hash = tokenHash((request.params as ConnectionParams).token)
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
  const base = connectionRequest(request, hash, mediaType, representation, limit, limit * page)
  return { list: { ...base, from, to, since, limit, page, version: query.version }, format, errors }
}

const NOT_IN_EXPORTS = ['limit', 'page', 'since', 'version']
/** The parameters of a page do not apply to changes. */
const NOT_WITH_SINCE = ['from', 'to', 'page', 'version']

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

function listErrors(request: FastifyRequest, maximumLimit: number): ParameterError[] {
  const { from, to, limit, page } = request.query as ListQuery
  const rules = request.validationError && listRules(maximumLimit)
  const errors = rules ? schemaErrors(request, rules) : []
  const isValid = (...names: string[]) =>
    errors.every(({ parameter }) => !names.includes(parameter))
  const rows = Number(limit ?? DEFAULT_LIMIT)
  const code = 'out_of_range'
  if ((rows < 1 || rows > maximumLimit) && isValid('limit')) {
    errors.push({ parameter: 'limit', code, detail: listRules(maximumLimit).limit })
  }
  if (Number(page) > MAXIMUM_PAGE && isValid('page')) {
    errors.push({ parameter: 'page', code, detail: listRules(maximumLimit).page })
  }
  // Days in this format can be compared as text.
  if (from !== undefined && to !== undefined && from > to && isValid('from', 'to')) {
    const detail = 'from must not be after to.'
    errors.push({ parameter: 'from', code: 'invalid_range', detail })
  }
  return errors
}

/**
 * Counts the request in the quota of its app, then rejects invalid parameters. A read authenticates the caller before
 * a response without data, and before the quota if its app is unknown (contract 1).
 * @throws ProblemError 401, 429, or 400 that lists the errors
 */
export async function admit(
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
