import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { addSampleData, check, record, recordOk, requestsOf } from '../support/golden-responses.ts'
import { assertNoErrors, startGoldenLoad } from '../support/load.ts'
import { openAsOwner } from '../support/logins.ts'
import { startServiceProcess } from '../support/processes/service-process.ts'
import { firstValue, migrate, startDebianPostgres } from '../support/servers/debian-postgres.ts'
import { startNetwork } from '../support/servers/network.ts'
import { startPgBouncer } from '../support/servers/pgbouncer.ts'
import { until } from '../support/until.ts'

/** Each request ends in time, whatever its statements are and wherever they wait. The silence is longer than LIMIT_MS. */
const SILENCE_MS = 16_000
/** Twice STATEMENT_TIMEOUT_MS, a second of grace, and two for a busy machine. */
const LIMIT_MS = 5_000 + 5_000 + 1_000 + 2_000

const server = await startDebianPostgres(t)
const login = await migrate(server.url)
const callers = await addSampleData(openAsOwner(t, server.url), 3_000)
const bouncer = await startPgBouncer(t, login, 3)
const direct = { DATABASE_URL: login }
const pooled = {
  DATABASE_URL: bouncer.through(login),
  DATABASE_POOLER: 'true',
}

const requests = callers.flatMap((caller) => {
  const { connection, token } = caller
  return [
    ...requestsOf([caller]),
    { path: connection.orders, token: 'unknown' },
    { path: connection.orders.replace(connection.token, 'unknown'), token },
    { path: `${connection.account}?limit=x`, token },
  ]
})

const hang = { begin: server.freeze, end: server.resume }
const silences = {
  'PostgreSQL hangs': { environment: direct, ...hang },
  'the processes of PostgreSQL hang, except the postmaster': {
    environment: direct,
    ...hang,
    begin: server.freezeBackends,
  },
  'the network is silent': await silentNetwork(direct),
  'PostgreSQL hangs behind PgBouncer': { environment: pooled, ...hang },
  'the network to PgBouncer is silent': await silentNetwork(pooled),
}

t.test('PostgreSQL hangs for 2.5 s during health checks: the connections stay', async (t) => {
  const service = await startServiceProcess(t, direct)
  const golden = await recordOk(service.url, requestsOf(callers))
  const checkAll = () => Promise.all(golden.map((each) => check(service.url, each)))
  await checkAll()
  const processes = async () =>
    (await firstValue(
      server.url,
      `select array_agg(pid) from pg_stat_activity
        where application_name = 'investment-data-query-service'`,
    )) as number[]
  const before = await processes()
  await server.freeze()
  for (let end = performance.now() + 2_500; performance.now() < end; await sleep(50)) {
    await service.ready()
  }
  await server.resume()
  await until('the service is ready', async () => (await service.ready()) === 200)
  t.same(new Set(await checkAll()), new Set(['ok']))
  const after = await processes()
  // A late health check closes its own connection.
  t.ok(before.filter((pid) => !after.includes(pid)).length <= 1, `${before}, then ${after}`)
  t.ok(before.length > 2, 'several connections for requests')
})

for (const [name, { environment, begin, end }] of Object.entries(silences)) {
  t.test(`503: ${name} for 16 s; each request ends in time`, async (t) => {
    await duringSilence(t, environment, begin, end)
  })
}

async function silentNetwork(environment: typeof direct) {
  const { url, pause, resume } = await startNetwork(t, environment.DATABASE_URL)
  const through = { ...environment, DATABASE_URL: url }
  return { environment: through, begin: async () => pause(), end: async () => resume() }
}

async function duringSilence(
  t: Test,
  environment: Record<string, string>,
  begin: () => Promise<void>,
  end: () => Promise<void>,
): Promise<void> {
  const service = await startServiceProcess(t, environment)
  const golden = await record(service.url, requests)
  t.same(new Set(golden.map(({ status }) => status)), new Set([200, 400, 401, 404]))
  const load = { url: service.url, golden, limitMs: LIMIT_MS, pauseMs: 100 }
  // More clients than reads in flight, so that some wait in each queue.
  const stop = startGoldenLoad(t, { ...load, clients: 40 })
  await sleep(1_000)
  await begin()
  await sleep(SILENCE_MS)
  await end()
  const responds = async () => {
    const results = golden.map((each) => check(service.url, each))
    return (await Promise.all(results)).every((result) => result === 'ok')
  }
  await until('the service responds', responds)
  assertNoErrors(t, await stop())
}
