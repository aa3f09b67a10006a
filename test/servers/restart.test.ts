import { rm } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import t from 'tap'
import {
  addSampleData,
  check,
  type GoldenResponse,
  recordOk,
  requestsOf,
} from '../support/golden-responses.ts'
import { startServiceUnderLoad } from '../support/load.ts'
import { openAsOwner } from '../support/logins.ts'
import { startServiceProcess, untilReadyIs } from '../support/processes/service-process.ts'
import { migrate, startDebianPostgres } from '../support/servers/debian-postgres.ts'
import { startEmbeddedPostgres } from '../support/servers/embedded-postgres.ts'
import { until } from '../support/until.ts'

const postgres = await startEmbeddedPostgres(t)
const { service, during } = await startServiceUnderLoad(t, postgres)

for (const [shutdown, signal] of [
  ['fast', 'SIGINT'],
  ['immediate', 'SIGQUIT'],
] as const) {
  t.test(`503: PostgreSQL restarts under load after a ${shutdown} shutdown`, async (t) => {
    await during(t, async () => {
      await postgres.stop(signal)
      await untilReadyIs(service, 503)
      await postgres.start()
    })
  })
}

const DOWN_MS = 15_000

t.test('503: PostgreSQL is down for 15 seconds; the service is not ready meanwhile', async (t) => {
  const statuses = new Set<number>()
  const { unavailable } = await during(t, async () => {
    await postgres.stop('SIGINT')
    await untilReadyIs(service, 503)
    for (let end = performance.now() + DOWN_MS; performance.now() < end; await sleep(500)) {
      statuses.add(await service.ready())
    }
    await postgres.start()
  })
  t.same([...statuses], [503])
  t.ok(unavailable > 0)
})

t.test('200: PostgreSQL ends each connection repeatedly; most requests get another', async (t) => {
  const killAll = sql<{ n: number }>`select count(pg_terminate_backend(pid))::int as n
    from pg_stat_activity where application_name = 'investment-data-query-service'`
  let killed = 0
  const { ok, unavailable } = await during(t, async () => {
    // On a busy machine, the service opens fewer than one connection a round.
    for (let round = 0; round < 30 || (killed <= 30 && round < 300); round += 1) {
      killed += (await killAll.execute(postgres.db)).rows[0]?.n ?? 0
      await sleep(100)
    }
  })
  t.ok(killed > 30, `${killed} connections`)
  t.ok(unavailable < ok, `${unavailable} with 503, ${ok} succeeded`)
})

t.test(
  '503: the data folder is deleted; the service is not ready while requests fail',
  async (t) => {
    const server = await startDebianPostgres(t)
    const login = await migrate(server.url)
    const requests = requestsOf(await addSampleData(openAsOwner(t, server.url), 100))
    const service = await startServiceProcess(t, { DATABASE_URL: login })
    const golden = await recordOk(service.url, requests)
    let sent = 0
    const sendNext = () => {
      sent += 1
      return check(service.url, golden[sent % golden.length] as GoldenResponse)
    }
    await rm(server.data, { recursive: true })
    // PostgreSQL may respond from its memory. It notices the loss within a minute, and stops.
    await until(
      'a request fails',
      async () => (await sendNext()) !== 'ok' || sleep(1_000, false),
      90_000,
    )
    for (let i = 0; i < 3; i += 1) {
      t.equal(await sendNext(), 'unavailable')
      await sleep(1_000)
    }
    for (let i = 0; i < 5; i += 1) {
      t.same([await sendNext(), await service.ready()], ['unavailable', 503])
      await sleep(1_000)
    }
  },
)
