import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import t from 'tap'
import { startOwnPostgres } from '../support/servers/embedded-postgres.ts'
import { startBesieged, untilNotReady } from '../support/service-under-siege.ts'

/** What happens to the database under load, on a server that is really stopped. */
const postgres = await startOwnPostgres(t)
const { service, during } = await startBesieged(t, postgres)

for (const signal of ['SIGINT', 'SIGQUIT'] as const) {
  const how = signal === 'SIGINT' ? 'fast' : 'immediate'
  t.test(`The database starts again under load, after a shutdown that is ${how}`, async (t) => {
    await during(t, async () => {
      await postgres.stop(signal)
      await untilNotReady(service)
      await postgres.start()
    })
  })
}

const GONE_MS = 60_000

t.test('The database is gone for a minute', async (t) => {
  const states = new Set<number>()
  const { refused } = await during(t, async () => {
    await postgres.stop('SIGINT')
    await untilNotReady(service)
    for (let end = performance.now() + GONE_MS; performance.now() < end; await sleep(500)) {
      states.add(await service.ready())
    }
    await postgres.start()
  })
  t.same([...states], [503], 'not ready for all that time')
  t.ok(refused > 0)
})

t.test('Every connection is killed, again and again', async (t) => {
  const killed = sql<{ n: number }>`select count(pg_terminate_backend(pid))::int as n
    from pg_stat_activity where application_name = 'investment-data-query-service'`
  let ended = 0
  const { ok, refused } = await during(t, async () => {
    for (let round = 0; round < 30; round += 1) {
      ended += (await killed.execute(postgres.db)).rows[0]?.n ?? 0
      await sleep(100)
    }
  })
  t.ok(ended > 30, `${ended} connections were killed`)
  t.ok(refused < ok, 'most requests are answered over another connection')
})
