import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Validators, validatorsOf } from '../http/conditional-requests.ts'
import { HttpError } from '../http/errors.ts'
import type { Quota } from '../http/quota.ts'
import type { Database } from '../postgres/database.ts'
import type { Holding } from '../postgres/response-memory.ts'
import { connectionKey, tokenHash } from '../postgres/tokens.ts'
import { ConnectionNotFound, confirmCaller } from '../queries/caller.ts'
import type { ConnectionFacts, Reply } from '../queries/read-response.ts'
import type { ConnectionParams } from '../schemas/list.ts'
import type { ParameterError } from '../schemas/problem.ts'

/**
 * Notes which app calls, for the log, and takes the request off its quota: once for each request, as
 * soon as the database has said who it is.
 * @throws HttpError when the app has used up its quota; that comes before anything else it is told
 */
async function callerIsKnown(
  quota: Quota | undefined,
  reply: FastifyReply,
  appId: string,
): Promise<void> {
  reply.request.appId = appId
  await quota?.spend(reply)
}

/**
 * A read that says who called, whether there is something to answer with or not. Where it says nothing,
 * because the client went away before the first row, the quota has the database asked who that was:
 * else whoever never waits for an answer could keep the database busy without end.
 */
export async function readOfKnownCaller(
  { db, quota }: { db: Database; quota: Quota | undefined },
  reply: FastifyReply,
  reading: Promise<Reply>,
): Promise<Reply> {
  const found = await reading.catch(async (error: unknown) => {
    if (error instanceof ConnectionNotFound) return error
    if (quota && reply.raw.destroyed) {
      await callerIsKnown(quota, reply, await confirmCaller(db, reply.request.caller))
    }
    throw error
  })
  await callerIsKnown(quota, reply, found.appId)
  if (found instanceof ConnectionNotFound) throw found
  return found
}

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
  const hash = tokenHash(token)
  const validators = validatorsOf(request, form)
  const { knownVersions } = validators
  return {
    facts: {
      caller: request.caller,
      connection: hash,
      connectionKey: connectionKey(hash),
      knownVersions,
      holding,
    },
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
 * @throws InvalidToken, ExpiredToken, or an HttpError that lists the faults
 */
export async function refuseFaults(
  options: RouteOptions,
  reply: FastifyReply,
  errors: ParameterError[],
): Promise<void> {
  if (errors.length === 0) return
  const appId = await confirmCaller(options.db, reply.request.caller)
  await callerIsKnown(options.quota, reply, appId)
  const detail = 'Query parameters cannot be used; `errors` lists each one.'
  throw new HttpError('invalid_request', detail, { errors })
}
