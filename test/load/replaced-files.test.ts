import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { openTestDatabase } from '../support/new-database.ts'
import { addMigration, copyRelease } from '../support/processes/release.ts'
import { startServiceProcess, untilReadyIs } from '../support/processes/service-process.ts'

t.test('Ready: the next release replaces the files of a running instance', async (t) => {
  const { login } = await openTestDatabase(t)
  const release = await copyRelease(t)
  const service = await startServiceProcess(t, { DATABASE_URL: login }, release)
  await untilReadyIs(service, 200)
  await addMigration(release, '9999-of-the-next-release')
  // Longer than the service caches the result of a readiness check.
  await sleep(500)
  t.equal(await service.ready(), 200)
  t.equal(await service.end('SIGINT'), 0)
})
