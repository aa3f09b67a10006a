/**
 * Compares the responses of this checkout with those of another one: status, headers and bytes of random requests on
 * one database. Prints each kind of difference, and exits with 1 if there is one.
 */
import { parseArgs } from 'node:util'
import { randomFrom } from '../../seeds/random.ts'
import { DEMO } from '../../seeds/sample-data.ts'
import { advance, seed } from '../../seeds/seed.ts'
import { tokenHash } from '../../src/postgres/tokens.ts'
import { loginOfCheckout } from '../data/checkout-login.ts'
import { type BenchDatabase, withDatabase, withPostgres } from '../data/database.ts'
import { withServers } from '../servers/fixture.ts'
import { startService } from '../servers/targets.ts'
import { checkOut } from './checkout.ts'
import { Differences } from './differences.ts'
import { closeConnections, decodedBody, exchange, headerOf, type Recorded } from './exchange.ts'
import { type Learned, REVOKED_TOKEN, randomRequest, type ServiceRequest } from './requests.ts'

const { values: flags } = parseArgs({
  options: {
    /** Folder of the other checkout, or a commit. */
    baseline: { type: 'string', default: '' },
    requests: { type: 'string', default: '10000' },
    seed: { type: 'string', default: '1' },
  },
})
if (flags.baseline === '') throw new Error('Give the other checkout: --baseline FOLDER_OR_COMMIT')

/** Settings of both services, and their part of the requests. A quota ends after 100 requests of an app. */
const SETTINGS: { part: number; settings: Record<string, string> }[] = [
  { part: 0.87, settings: {} },
  { part: 0.1, settings: { MAX_LIMIT: '2500' } },
  { part: 0.03, settings: { RATE_LIMIT_PER_MINUTE: '100' } },
]

/** The sample data moves by a day after this number of requests: versions, cursors and tags become old. */
const REQUESTS_A_DAY = 500

const differences = new Differences()
const statuses = new Map<string, number>()
const random = randomFrom(Number(flags.seed))
const checkout = await checkOut(flags.baseline)
try {
  await withPostgres((server) => withDatabase(server, compareAll))
} finally {
  closeConnections()
  await checkout.remove()
}
console.log(`${flags.requests} requests, by status:`)
for (const [status, count] of [...statuses].sort()) console.log(`  ${status}: ${count}`)
console.log(differences.kinds.size === 0 ? 'No difference.' : String(differences))
if (differences.kinds.size > 0) process.exitCode = 1

async function compareAll(database: BenchDatabase): Promise<void> {
  await seed(database.owner)
  await addRevokedToken(database)
  const baselineUrl = await loginOfCheckout(database, checkout.folder)
  for (const { part, settings } of SETTINGS)
    await compare(database, baselineUrl, settings, Math.round(Number(flags.requests) * part))
}

async function compare(
  database: BenchDatabase,
  baselineUrl: string,
  settings: Record<string, string>,
  requests: number,
): Promise<void> {
  const environment = { ...settings, TRUSTED_PROXIES: '127.0.0.1', LOG_LEVEL: 'silent' }
  await withServers(async (start) => {
    const baseline = await start(startService(baselineUrl, environment, checkout.folder))
    const current = await start(startService(database.serviceUrl, environment))
    const learned: Learned[] = []
    for (let sent = 0; sent < requests; sent += 1) {
      if (sent % REQUESTS_A_DAY === REQUESTS_A_DAY - 1) await advance(database.owner, 1)
      const request = randomRequest(random, learned)
      const [before, after] = await Promise.all([
        exchange(baseline.port, request),
        exchange(current.port, request),
      ])
      differences.add(request, before, after)
      statuses.set(String(before.status), (statuses.get(String(before.status)) ?? 0) + 1)
      learn(learned, request, before)
    }
  })
}

function learn(learned: Learned[], { target, headers }: ServiceRequest, response: Recorded): void {
  const etag = headerOf(response, 'etag')
  const version = headerOf(response, 'data-version')
  if (etag === undefined || version === undefined) return
  const at = headers.indexOf('Accept')
  const accept = at < 0 ? undefined : headers[at + 1]
  const cursor = /"nextCursor":"([^"]*)"/.exec(decodedBody(response).toString('latin1'))?.[1]
  learned.push({ target, accept, etag, version, cursor })
}

async function addRevokedToken({ owner }: BenchDatabase): Promise<void> {
  await owner.query(
    `insert into app_token (app_id, token_hash, revoked_at) select id, $2, now() from app where name = $1`,
    [DEMO.wealth.app, tokenHash(REVOKED_TOKEN)],
  )
}
