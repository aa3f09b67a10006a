import * as http from 'node:http'
import * as https from 'node:https'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Test } from 'tap'
import type { KnownDemo } from './demo-answers.ts'
import { keepAsking, type Outcome } from './load.ts'

/** What clients see of a service behind a site. */
export interface Site {
  url: string
  /** What they trust, where it speaks TLS. */
  certificate?: string
}

const CLIENTS = 8

/**
 * Clients of a site, each with one connection that it keeps, ask for what is known about the demo
 * world, again and again, and never for the same answer twice.
 * @returns what ends them, as the end of the test does, and tells what came of it
 */
export function keepAskingThrough(t: Test, site: Site, known: KnownDemo[]): () => Promise<Outcome> {
  const { Agent } = modulesOf(site)
  const agents = Array.from(
    { length: CLIENTS },
    () => new Agent({ keepAlive: true, maxSockets: 1 }),
  )
  let turn = 0
  const stop = keepAsking(t, CLIENTS, async (client) => {
    turn += 1
    const wanted = known[turn % known.length] as KnownDemo
    const { status, body } = await askOnce(site, wanted, agents[client])
    await sleep(20)
    const same = status === wanted.status && body === wanted.text
    return same ? undefined : `${status} ${body.slice(0, 200)}`
  })
  return async () => {
    const outcome = await stop()
    for (const agent of agents) agent.destroy()
    return outcome
  }
}

/** One request, without a second try, and all of what came back. */
export async function askOnce(
  site: Site,
  { path, token }: { path: string; token?: string },
  agent?: http.Agent,
) {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const trust = site.certificate === undefined ? {} : { ca: site.certificate }
  const { promise, resolve, reject } = Promise.withResolvers<http.IncomingMessage>()
  const options = { headers, timeout: 20_000, ...trust, ...(agent && { agent }) }
  const request = modulesOf(site).get(site.url + path, options, resolve)
  request.on('error', reject)
  request.on('timeout', () => request.destroy(new Error('no answer in time')))
  const response = await promise
  return { status: response.statusCode, headers: response.headers, body: await text(response) }
}

const modulesOf = ({ url }: Site) => (url.startsWith('https:') ? https : http)
