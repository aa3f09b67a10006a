import t from 'tap'
import { operatorHere } from '../../operator/operator-process.ts'
import { startService } from '../../support/service.ts'
import { demoRequests, seedDemo, tellAll } from '../support/demo-answers.ts'
import { startServiceProcess } from '../support/processes/service-process.ts'
import { firstValue, migrateFor, startDebianPostgres } from '../support/servers/debian-postgres.ts'

// Which all other tests can be run against as well: TEST_DATABASE_URL.
const server = await startDebianPostgres(t)
const environment = { DATABASE_URL: server.url }

t.test('An operator sets PostgreSQL 15 up, and the service answers as on the newest', async (t) => {
  t.match(await firstValue(server.url, 'show server_version'), /^15\./)
  const login = await migrateFor(server.url)
  const seeded = await operatorHere(['seed'], environment)
  t.equal(seeded.code, 0, seeded.stderr)

  const newest = await startService(t)
  await seedDemo(newest.databaseUrl)
  const service = await startServiceProcess(t, { DATABASE_URL: login })
  t.equal(await service.ready(), 200)
  const get = async (path: string, { token = '' } = {}) => {
    const headers = { authorization: `Bearer ${token}` }
    const answer = await fetch(service.url + path, { headers })
    const { status } = answer
    return { status, headers: answer.headers, text: await answer.text(), json: () => ({}) }
  }
  // The tag tells when the rows were written, which was not at the same time.
  const told = async (from: Parameters<typeof tellAll>[0]) =>
    (await tellAll(from)).map(({ etag, ...rest }) => ({ tagged: etag !== null, ...rest }))
  const answers = await told({ get })
  t.same(answers, await told(newest))
  t.equal(answers.length, demoRequests.length)
  t.equal(await service.end('SIGTERM'), 0)
})

t.test('The books agree with the rows, and both are the same after another seeding', async (t) => {
  const verify = async () => (await operatorHere(['verify', '--json'], environment)).json()
  const before = await verify()
  t.same(before.differences, [])
  t.ok(before.rows > 5_000)
  t.equal((await operatorHere(['migrate'], environment)).code, 0)
  t.equal((await operatorHere(['seed'], environment)).code, 0)
  t.same(await verify(), before)
})
