import type { FastifyInstance, FastifyReply } from 'fastify'
import { FifoMap } from 'toad-cache'
import type { Config } from '../config.ts'
import type { Database } from '../database/database.ts'
import type { Caller } from '../queries/calling-app.ts'
import { confirmCaller } from '../queries/confirm-caller.ts'
import { Refusal } from './problems.ts'
import { type CounterOptions, openCounter, WINDOW_SECONDS } from './quota-counter.ts'

/** How many requests an app may send, and how many it has sent (contract 19). */
export interface Quota {
  /**
   * Takes one request off the quota of the app that `request.appId` names, and tells in the headers
   * what is left.
   * @throws Refusal when nothing was left
   */
  spend(reply: FastifyReply): Promise<void>
}

interface QuotaOptions extends CounterOptions {
  db: Database
}

/** The quota that the settings give to each app, if they give one. */
export async function configuredQuota(
  app: FastifyInstance,
  { db, config }: { db: Database; config: Config },
): Promise<Quota | undefined> {
  const perMinute = config.RATE_LIMIT_PER_MINUTE
  if (perMinute === 0) return undefined
  return openQuota(app, { db, perMinute, redisUrl: config.REDIS_URL })
}

/** How many apps and callers are kept in mind; the oldest ones are forgotten. */
const MOST_APPS = 10_000
const MOST_CALLERS = 50_000

/**
 * Limits the apps that call the routes of `app`. A request counts once the database has said whose it
 * is, so that all tokens of an app share its quota and a stranger uses up nobody's. An app that has
 * nothing left is remembered, and is refused before anything is read for it.
 */
async function openQuota(app: FastifyInstance, options: QuotaOptions): Promise<Quota> {
  const { db, perMinute } = options
  const count = await openCounter(app, options)
  const appOf = new FifoMap<string>(MOST_CALLERS)
  const spentUntil = new FifoMap<number>(MOST_APPS)

  const refuseSpent = (reply: FastifyReply, appId: string | undefined) => {
    const milliseconds = (spentUntil.get(appId) ?? 0) - Date.now()
    if (milliseconds > 0) refuse(reply, perMinute, milliseconds)
  }
  app.addHook('onRequest', async (request, reply) => {
    const until = spentUntil.get(appOf.get(nameOf(request.caller))) ?? 0
    if (until <= Date.now()) return
    // What is kept in mind decides only whether to ask: who it is, the database says.
    request.appId = await confirmCaller(db, request.caller)
    refuseSpent(reply, request.appId)
  })

  return {
    async spend(reply) {
      const { request } = reply
      const name = nameOf(request.caller)
      if (appOf.get(name) !== request.appId) appOf.set(name, String(request.appId))
      reply.header('ratelimit-policy', `"app";q=${perMinute};w=${WINDOW_SECONDS}`)
      const state = await count(request)
      if (state === undefined) return
      if (state.exceeded) {
        spentUntil.set(request.appId, Date.now() + state.windowEndsInMs)
        refuse(reply, perMinute, state.windowEndsInMs)
      }
      tellRest(reply, state.remaining, state.windowEndsInMs)
    },
  }
}

function nameOf(caller: Caller): string {
  return 'tokenHash' in caller ? caller.tokenHash.toString('base64') : `client ${caller.clientId}`
}

function tellRest(reply: FastifyReply, remaining: number, milliseconds: number): number {
  const seconds = Math.max(1, Math.ceil(milliseconds / 1000))
  reply.header('ratelimit', `"app";r=${remaining};t=${seconds}`)
  return seconds
}

function refuse(reply: FastifyReply, perMinute: number, milliseconds: number): never {
  const seconds = tellRest(reply, 0, milliseconds)
  reply.header('ratelimit-policy', `"app";q=${perMinute};w=${WINDOW_SECONDS}`)
  throw new Refusal('too_many_requests', `An app may send ${perMinute} requests a minute.`, {
    headers: { 'retry-after': String(seconds) },
  })
}
