import type { FastifyReply } from 'fastify'
import type { Database } from '../database/database.ts'
import type { Quota } from '../plugins/quota.ts'
import { confirmCaller } from '../queries/confirm-caller.ts'
import { ConnectionNotFound } from '../queries/refusals.ts'
import type { Reply } from '../queries/reply.ts'

/**
 * Notes which app calls, for the log, and takes the request off its quota: once for each request, as
 * soon as the database has said who it is.
 * @throws Refusal when the app has used up its quota; that comes before anything else it is told
 */
export async function callerIsKnown(
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
