import type { FastifyReply, FastifyRequest, FastifySchemaValidationError } from 'fastify'
import type { Authentication } from '../http/authentication.ts'
import { knownVersions, representationOf } from '../http/conditional-requests.ts'
import { HttpError } from '../http/errors.ts'
import { isExact, JSON_TYPE } from '../http/media-types.ts'
import type { Quota } from '../http/quota.ts'
import type { Database } from '../postgres/database.ts'
import { connectionKey, tokenHash } from '../postgres/tokens.ts'
import type { Caller } from '../queries/caller.ts'
import type { ConnectionRequest } from '../queries/read-response.ts'
import type { ConnectionParams } from '../schemas/list.ts'
import { MAX_PARAMETER_ERRORS, type ParameterError } from '../schemas/problem.ts'
import type { UnfinishedExports } from './export.ts'

export interface RouteOptions {
  db: Database
  /** Maximum value of `limit`. */
  maximumLimit: number
  authentication: Authentication
  /** Quota of each app; undefined: no limit. */
  quota: Quota | undefined
  unfinished: UnfinishedExports
}

/**
 * Creates the request object for the queries.
 * @param hash SHA-256 of the connection token
 * @param representation of the default media type, see representationOf()
 * @param rows maximum number of rows in the response
 */
export function connectionRequest(
  { context, headers }: FastifyRequest,
  hash: Buffer,
  mediaType: string,
  representation: string,
  rows: number,
): ConnectionRequest {
  const { 'if-none-match': known, 'accept-encoding': acceptEncoding } = headers
  const isDefault = mediaType === JSON_TYPE
  const digest = isDefault ? representation : representationOf(representation, mediaType)
  context.memory.expect(rows)
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

/** Hash of the connection token in the path. */
export const connectionHash = ({ params }: FastifyRequest): Buffer =>
  tokenHash((params as ConnectionParams).token)

/** Rules of the parameters, in words. Transfer orders have no parameters. */
export type ParameterRules = Record<string, string>

/** Lists the errors of the schema validation, one per parameter. A query may have 3,000 of them. */
export function schemaErrors(
  { validationError }: FastifyRequest,
  rulesOf: () => ParameterRules,
): ParameterError[] {
  if (validationError === undefined) return []
  const found: FastifySchemaValidationError[] = validationError.validation
  const rules = rulesOf()
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
 * Counts the request in the quota of its app, then rejects invalid parameters. Unknown callers get 401
 * instead (contract 1).
 * @throws InvalidToken, ExpiredToken, HttpError 429, or HttpError 400 that lists the errors
 */
export async function admit(
  { authentication, quota }: RouteOptions,
  reply: FastifyReply,
  errors: ParameterError[],
): Promise<void> {
  if (quota === undefined && errors.length === 0) return
  await authentication.confirmRecent(reply.request)
  await quota?.charge(reply)
  if (errors.length === 0) return
  const listed = errors.slice(0, MAX_PARAMETER_ERRORS)
  const some = `Some query parameters are invalid: \`errors\` lists the first ${listed.length} of ${errors.length}.`
  const detail = errors.length > listed.length ? some : undefined
  throw new HttpError('invalid_request', detail, {}, listed)
}
