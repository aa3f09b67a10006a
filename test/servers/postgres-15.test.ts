import t from 'tap'
import { demoRequests, record, seedDemo } from '../support/golden-responses.ts'
import { operatorHere } from '../support/operator-process.ts'
import { startServiceProcess } from '../support/processes/service-process.ts'
import { firstValue, migrate, startDebianPostgres } from '../support/servers/debian-postgres.ts'
import { startService } from '../support/service.ts'

// All other tests can run on it, too: see TEST_DATABASE_URL in test/README.md.
const server = await startDebianPostgres(t)
const environment = { DATABASE_URL: server.url }

t.test('PostgreSQL 15: the responses are those of the newest PostgreSQL', async (t) => {
  t.match(await firstValue(server.url, 'show server_version'), /^15\./)
  const login = await migrate(server.url)
  const seeded = await operatorHere(['seed'], environment)
  t.equal(seeded.code, 0, seeded.stderr)

  const newest = await startService(t)
  await seedDemo(newest.databaseUrl)
  const service = await startServiceProcess(t, { DATABASE_URL: login })
  t.equal(await service.ready(), 200)
  // The ETag depends on the time of the seeding.
  const recordWithoutETags = async (url: string) =>
    (await record(url, demoRequests)).map((response) => ({
      ...response,
      etag: response.etag !== null,
    }))
  const responses = await recordWithoutETags(service.url)
  t.same(responses, await recordWithoutETags(newest.url))
  t.equal(responses.length, demoRequests.length)
  t.equal(await service.end('SIGTERM'), 0)
})

t.test('PostgreSQL 15: the row counts are right, also after a second seeding', async (t) => {
  const verify = async () => (await operatorHere(['verify', '--json'], environment)).json()
  const before = await verify()
  t.same(before.differences, [])
  t.ok(before.rows > 5_000)
  t.equal((await operatorHere(['migrate'], environment)).code, 0)
  t.equal((await operatorHere(['seed'], environment)).code, 0)
  t.same(await verify(), before)
})
