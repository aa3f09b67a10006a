import type { FastifyReply } from 'fastify'
import type { Quota } from '../plugins/quota.ts'
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

/** A read that says who called, whether there is something to answer with or not. */
export async function readOfKnownCaller(
  quota: Quota | undefined,
  reply: FastifyReply,
  reading: Promise<Reply>,
): Promise<Reply> {
  const found = await reading.catch((error: unknown) => {
    if (error instanceof ConnectionNotFound) return error
    throw error
  })
  await callerIsKnown(quota, reply, found.appId)
  if (found instanceof ConnectionNotFound) throw found
  return found
}
