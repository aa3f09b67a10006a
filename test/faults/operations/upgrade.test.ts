import { setTimeout as sleep } from 'node:timers/promises'
import { type Kysely, sql } from 'kysely'
import t from 'tap'
import type { Tables } from '../../../src/postgres/tables.ts'
import { operator } from '../../operator/operator-process.ts'
import { createDatabase } from '../../support/database.ts'
import { loginOfService, openAsOwner } from '../../support/logins.ts'
import { until } from '../../support/until.ts'
import { learnDemo, seedDemo } from '../support/demo-answers.ts'
import { allAnswered } from '../support/load.ts'
import { startInstance } from '../support/processes/instances.ts'
import { addMigration, copyRelease } from '../support/processes/release.ts'
import { launchService } from '../support/processes/service-process.ts'
import { keepAskingThrough } from '../support/proxied-load.ts'
import { startHaproxy } from '../support/servers/proxies.ts'

/** The upgrade of docs/operations.md, to a release that has one migration more, and the way back. */
const { url } = await createDatabase(t)
await seedDemo(url)
const known = await learnDemo(t, url)
const db = openAsOwner(t, url)
const DATABASE_URL = await loginOfService(t, db, url)
const newer = await copyRelease(t)
// What it does to the lists needs their tables for itself, or keeps writers away from them.
await addMigration(newer, '9999-of-the-next-release', [
  `alter table portfolio_transaction add column of_later text not null default 'of the next release'`,
  'create index of_later on account_transaction (movement_id)',
  'alter table connection add column of_later integer',
])

t.test('Before the migration, an instance of the new release refuses to start', async (t) => {
  const { process, said } = await launchService(t, { DATABASE_URL, PORT: '0' }, newer)
  await until('it has ended', () => process.exitCode !== null)
  t.equal(process.exitCode, 1)
  t.match(said(), /9999-of-the-next-release/)
})

t.test('Migration, new instances and the way back cost no request', async (t) => {
  const start = { environment: { DATABASE_URL } }
  const instances = [await startInstance(t, start), await startInstance(t, start)] as const
  const proxy = await startHaproxy(t, [instances[0].port, instances[1].port])
  const stop = keepAskingThrough(t, proxy, known)
  const env = { DATABASE_URL: url }
  const migrate = (release?: string) => operator(['migrate'], { env, release })

  t.match(await migrate(), { code: 0, stdout: 'The schema is up to date.\n', stderr: '' })

  const { freed } = await holdUntilGivenWay(db)
  const [{ code, stdout, stderr }] = await Promise.all([migrate(newer), freed])
  t.equal(code, 0, stderr)
  t.equal(stdout, 'Applied 9999-of-the-next-release.\n')
  t.match(stderr, /^Another session holds a lock that a migration needs; trying again \(1\)\.\n/)
  t.match(await migrate(newer), { code: 0, stdout: 'The schema is up to date.\n' })

  for (const instance of instances) await instance.restart({ ...start, release: newer })
  for (const instance of instances) await instance.restart(start)
  await sleep(1_000)
  allAnswered(t, await stop())
  t.same(await learnDemo(t, url), known)
})

/** A session that has read from a table keeps a migration from changing it, until that has given way. */
async function holdUntilGivenWay(db: Kysely<Tables>) {
  const waiting = sql<{ n: number }>`select count(*)::int as n from pg_locks
    where relation = 'portfolio_transaction'::regclass and database =
      (select oid from pg_database where datname = current_database())
      and mode = 'AccessExclusiveLock' and not granted`
  const waits = async () => (await waiting.execute(db)).rows[0]?.n === 1
  const { promise: held, resolve } = Promise.withResolvers<void>()
  const freed = db.transaction().execute(async (holder) => {
    await sql`lock table portfolio_transaction in access share mode`.execute(holder)
    resolve()
    await until('the migration waits', waits)
    await until('it has given way', async () => !(await waits()))
  })
  await held
  return { freed }
}
