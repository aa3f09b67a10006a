import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { type GoldenResponse, sendAndRead } from '../support/golden-responses.ts'
import { startServiceUnderLoad } from '../support/load.ts'
import { isProblem } from '../support/problem.ts'
import { untilReadyIs } from '../support/processes/service-process.ts'
import { startServers } from '../support/servers/standbys.ts'
import { until } from '../support/until.ts'

/*
 * Standbys have every row, but the service must not respond from them alone. Only the primary knows
 * about revoked tokens and changed rows.
 */

const servers = await startServers(t)
const { primary, standbys, db, untilCaughtUp } = servers
const { service, golden, during } = await startServiceUnderLoad(t, {
  db,
  login: servers.login(primary),
  environment: { DATABASE_REPLICA_URL: standbys.map(servers.login).join() },
})
const [first] = golden as [GoldenResponse]
await untilCaughtUp()

const DOWN_MS = 3_000
const CONNECTIONS = `select count(*)::int from pg_stat_activity where usename = 'investment_service'`
const ROWS = 'select count(*)::int from portfolio_transaction'

/** Asserts that each type of request gets 503 although the standbys respond. */
async function assertUnavailable(t: Test): Promise<void> {
  await untilReadyIs(service, 503)
  for (const { query } of standbys) {
    t.equal(await query('select pg_is_in_recovery()'), true, 'the standby responds')
    t.ok(Number(await query(ROWS)) >= 9_000, 'the standby has the rows')
  }
  const { path, token, etag } = first
  const notFound = path.replace(/connections\/[^/]+/, 'connections/unknown')
  const responses = await Promise.all([
    ...golden.map((request) => sendAndRead(service.url, request)),
    sendAndRead(service.url, first, { headers: { 'if-none-match': String(etag) } }),
    sendAndRead(service.url, { path, token: 'wrong' }),
    sendAndRead(service.url, { path: notFound, token }),
    sendAndRead(service.url, { path: '/health/ready' }),
  ])
  for (const response of responses) {
    isProblem(t, response, 'service_unavailable')
    t.match(response.headers.get('retry-after'), /^[1-9]\d*$/)
  }
  t.equal((await sendAndRead(service.url, { path: '/health/live' })).status, 200)
  await sleep(DOWN_MS)
  t.equal(await service.ready(), 503)
}

/** Stops the primary under load, and starts it again. */
async function withoutPrimary(t: Test, leave: () => Promise<void>, back: () => Promise<void>) {
  const { unavailable } = await during(t, async () => {
    for (const { query } of standbys) {
      const isUsed = async () => Number(await query(CONNECTIONS)) > 0
      await until('the service reads from the standby', isUsed)
    }
    await leave()
    await assertUnavailable(t).finally(back)
  })
  t.ok(unavailable > 0)
}

t.test('503: the primary is down, and only the standbys respond', (t) =>
  withoutPrimary(t, primary.stop, primary.start),
)

t.test('503: the primary hangs, and only the standbys respond', (t) =>
  withoutPrimary(t, primary.freeze, primary.resume),
)

t.test('503: a standby restarts before its primary', async (t) => {
  const [one] = standbys
  const leave = async () => {
    await one.stop()
    await primary.stop()
    await one.start()
  }
  await withoutPrimary(t, leave, primary.start)
})
