import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import t from 'tap'
import { startServiceUnderLoad } from '../support/load.ts'
import { untilReadyIs } from '../support/processes/service-process.ts'
import { startEmbeddedPostgres } from '../support/servers/embedded-postgres.ts'

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

const DOWN_MS = 60_000

t.test('503: PostgreSQL is down for a minute; the service is not ready meanwhile', async (t) => {
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
