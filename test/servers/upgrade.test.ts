import { setTimeout as sleep } from 'node:timers/promises'
import { type Kysely, sql } from 'kysely'
import t from 'tap'
import type { Tables } from '../../src/postgres/tables.ts'
import { isNightly } from '../nightly.ts'
import { recordDemo } from '../support/golden-responses.ts'
import { assertAllAnswered, startGoldenLoad } from '../support/load.ts'
import { operator } from '../support/operator-process.ts'
import { startInstance } from '../support/processes/instances.ts'
import { addMigration, copyRelease } from '../support/processes/release.ts'
import { launchService } from '../support/processes/service-process.ts'
import { openSeededDatabase } from '../support/seeded-service.ts'
import { startHaproxy } from '../support/servers/proxies.ts'
import { until } from '../support/until.ts'

/** Upgrade and downgrade by docs/upgrade.md. The newer release has one more migration. */
const { url, db, login: DATABASE_URL } = await openSeededDatabase(t)
const golden = await recordDemo(t, url)
const newer = await copyRelease(t)
// These statements lock the tables of the lists, or block writers.
await addMigration(newer, '9999-of-the-next-release', [
  `alter table portfolio_transaction add column of_later text not null default 'of the next release'`,
  'create index of_later on account_transaction (movement_id)',
  'alter table connection add column of_later integer',
])

t.test('Exit code 1: the newer release starts before its migration', async (t) => {
  const { ended, output } = await launchService(t, { DATABASE_URL, PORT: '0' }, newer)
  t.equal(await ended(), 1)
  t.match(output(), /9999-of-the-next-release/)
})

t.test('200: migration, upgrade and downgrade cost no request', async (t) => {
  const options = { environment: { DATABASE_URL } }
  const instances = [await startInstance(t, options), await startInstance(t, options)] as const
  const proxy = await startHaproxy(t, [instances[0].port, instances[1].port])
  // Below the limit of the proxy: 5,000 requests in ten seconds.
  const stop = startGoldenLoad(t, {
    url: proxy.url,
    golden,
    clients: 8,
    pauseMs: isNightly ? 20 : 50,
  })
  const env = { DATABASE_URL: url }
  const migrate = (release?: string) => operator(['migrate'], { env, release })
  const upToDate = { code: 0, stdout: 'The schema is up to date.\n', stderr: '' }

  t.match(await migrate(), upToDate)

  const { released } = await lockUntilMigrationYields(db)
  const [{ code, stdout, stderr }] = await Promise.all([migrate(newer), released])
  t.equal(code, 0, stderr)
  t.equal(stdout, 'Applied 9999-of-the-next-release.\n')
  t.match(stderr, / holds a lock that a migration needs; trying again \(1\)\.\n/)
  t.match(await migrate(newer), upToDate)

  for (const instance of instances) await instance.restart({ ...options, release: newer })
  for (const instance of instances) await instance.restart(options)
  await sleep(1_000)
  assertAllAnswered(t, await stop())
  t.same(await recordDemo(t, url), golden)
})

/** Holds a lock that the migration needs until the migration has given up waiting once. */
async function lockUntilMigrationYields(db: Kysely<Tables>) {
  const waiting = sql<{ n: number }>`select count(*)::int as n from pg_locks
    where relation = 'portfolio_transaction'::regclass and database =
      (select oid from pg_database where datname = current_database())
      and mode = 'AccessExclusiveLock' and not granted`
  const waits = async () => (await waiting.execute(db)).rows[0]?.n === 1
  const { promise: locked, resolve } = Promise.withResolvers<void>()
  const released = db.transaction().execute(async (holder) => {
    await sql`lock table portfolio_transaction in access share mode`.execute(holder)
    resolve()
    await until('the migration waits for the lock', waits)
    await until('the migration gives up', async () => !(await waits()))
  })
  await locked
  return { released }
}
