import type { FastifyReply, FastifyRequest, FastifySchemaValidationError } from 'fastify'
import { knownVersions, representationOf } from '../http/conditional-requests.ts'
import { HttpError } from '../http/errors.ts'
import { isExact, JSON_TYPE, JSON_TYPES, type MediaTypes, negotiate } from '../http/media-types.ts'
import type { Quota } from '../http/quota.ts'
import type { Database } from '../postgres/database.ts'
import { connectionKey, tokenHash } from '../postgres/tokens.ts'
import { confirmCaller, RequestOfAppError } from '../queries/caller.ts'
import type { ConnectionRequest, ReadResponse } from '../queries/read-response.ts'
import type { ConnectionParams } from '../schemas/list.ts'
import { MAX_PARAMETER_ERRORS, type ParameterError } from '../schemas/problem.ts'

export interface RouteOptions {
  db: Database
  /** Maximum value of `limit`. */
  maximumLimit: number
  /** Quota of each app; undefined: no limit. */
  quota: Quota | undefined
}

/**
 * Creates the request object for the queries.
 * @param representation of the default media type, see representationOf()
 * @param rows maximum number of rows in the response
 * @param mediaTypes of the response, the default first
 */
export function connectionRequest(
  { db }: RouteOptions,
  { request, raw, elapsedTime }: FastifyReply,
  representation: string,
  rows: number,
  mediaTypes: MediaTypes<string> = JSON_TYPES,
): ConnectionRequest {
  const { 'if-none-match': known, accept } = request.headers
  const mediaType = negotiate(accept, mediaTypes)
  const isDefault = mediaType === JSON_TYPE
  const digest = isDefault ? representation : representationOf(representation, mediaType)
  const hash = tokenHash((request.params as ConnectionParams).token)
  const reservation = db.reserve(rows, performance.now() - elapsedTime, request.tenant)
  reservation.direct = request.headers['accept-encoding'] === undefined
  if (raw.destroyed) reservation.end(false)
  else request.endListeners.push(() => reservation.end(raw.writableFinished))
  return {
    caller: request.caller,
    tokenHash: hash,
    connectionKey: connectionKey(hash),
    mediaType,
    exact: isExact(mediaType),
    representation: digest,
    knownVersions: knownVersions(known, digest),
    reservation,
  }
}

/** Rules of the parameters, in words. Transfer orders have no parameters. */
export type ParameterRules = Record<string, string>

/** Lists the errors of the schema validation, one per parameter. A query may have 3,000 of them. */
export function schemaErrors(request: FastifyRequest, rules: ParameterRules): ParameterError[] {
  const found: FastifySchemaValidationError[] = request.validationError?.validation ?? []
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

/**
 * Rejects invalid parameters. Unknown callers get 401 instead (contract 1).
 * @throws InvalidToken, ExpiredToken, or an HttpError that lists the errors
 */
export async function rejectParameters(
  options: RouteOptions,
  reply: FastifyReply,
  errors: ParameterError[],
): Promise<void> {
  if (errors.length === 0) return
  const listed = errors.slice(0, MAX_PARAMETER_ERRORS)
  const some = `Some query parameters are invalid: \`errors\` lists the first ${listed.length} of ${errors.length}.`
  const detail = errors.length > listed.length ? some : undefined
  const error = new HttpError('invalid_request', detail, {}, listed)
  await charge(options, reply, Promise.reject(error))
}

/**
 * Waits for a read, and counts the request in the quota of its app. Every request of a known caller
 * counts once, whatever its result.
 * @throws HttpError 429, before any other result is sent
 */
export async function charge(
  { db, quota }: RouteOptions,
  reply: FastifyReply,
  reading: Promise<ReadResponse>,
): Promise<ReadResponse> {
  const { request, raw } = reply
  const result = await reading.catch(async (error: unknown) => {
    if (error instanceof RequestOfAppError) return { error, appId: error.appId }
    // A request also counts if its client disconnected early, because the database did the work.
    const unknown = error instanceof HttpError || (quota !== undefined && raw.destroyed)
    if (!unknown) throw error
    const { caller, tenant } = request
    const since = performance.now() - reply.elapsedTime
    return { error, appId: await confirmCaller(db, caller, { since, tenant }) }
  })
  const appId = 'meta' in result ? result.meta.appId : result.appId
  request.appId = appId
  if (request.tenant.appId !== appId) request.server.remember(request.caller, appId)
  await quota?.charge(reply)
  if ('error' in result) throw result.error
  return result
}
