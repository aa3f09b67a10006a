import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Holding } from '../database/answer-memory.ts'
import type { Database } from '../database/database.ts'
import { tokenHash } from '../database/token-hash.ts'
import { Refusal } from '../plugins/problems.ts'
import type { Quota } from '../plugins/quota.ts'
import { confirmCaller } from '../queries/confirm-caller.ts'
import type { ConnectionFacts } from '../queries/reply.ts'
import type { ConnectionParams } from '../schemas/connection-params.ts'
import type { ParameterFault } from '../schemas/parameter-fault.ts'
import { callerIsKnown } from './known-caller.ts'
import { type Validators, validatorsOf } from './validators.ts'

/** What a route gets to answer with. */
export interface RouteOptions {
  db: Database
  /** The largest `limit`. */
  maximumLimit: number
  /** How much an app may ask; without it, as much as it likes. */
  quota: Quota | undefined
}

/** What a request asks about its connection, and the tags that its answer is held against. */
export function connectionFacts(
  request: FastifyRequest,
  form: string,
  holding: Holding,
): { facts: ConnectionFacts; validators: Validators } {
  const { token } = request.params as ConnectionParams
  const validators = validatorsOf(request, form)
  const { knownVersions } = validators
  return {
    facts: { caller: request.caller, connection: tokenHash(token), knownVersions, holding },
    validators,
  }
}

/** What an answer of so many rows may hold of the memory, until it is sent or its client is gone. */
export function holdingFor(
  db: Database,
  { raw, elapsedTime }: FastifyReply,
  rows: number,
): Holding {
  const holding = db.hold(rows, performance.now() - elapsedTime)
  holding.direct = raw.req.headers['accept-encoding'] === undefined
  if (raw.destroyed) holding.end(false)
  else raw.once('close', () => holding.end(raw.writableFinished))
  return holding
}

/**
 * Refuses a request whose parameters are at fault, but not before its caller is known (contract 1).
 * @throws TokenUnknown, TokenExpired, or a Refusal that lists the faults
 */
export async function refuseFaults(
  options: RouteOptions,
  reply: FastifyReply,
  errors: ParameterFault[],
): Promise<void> {
  if (errors.length === 0) return
  const appId = await confirmCaller(options.db, reply.request.caller)
  await callerIsKnown(options.quota, reply, appId)
  const detail = 'Query parameters cannot be used; `errors` lists each one.'
  throw new Refusal('invalid_request', detail, { errors })
}
