import { once } from 'node:events'
import { sql } from 'kysely'
import t from 'tap'
import { freePort } from '../../../tools/embedded-postgres/free-port.ts'
import { createDatabase } from '../../support/database.ts'
import { loginOfService, openAsOwner } from '../../support/logins.ts'
import { addCaller } from '../../support/rows.ts'
import { hideNewestMigration } from '../../support/schema-behind.ts'
import { until } from '../../support/until.ts'
import { launchService, startServiceProcess } from '../support/processes/service-process.ts'

/** A database that is not as it should be when the service starts. */
const { url } = await createDatabase(t)
const db = openAsOwner(t, url)
const login = await loginOfService(t, db, url)

t.test('A schema that is behind: it refuses to start, and says what to run', async (t) => {
  const newest = await hideNewestMigration(db)
  const { process, said } = await launchService(t, { DATABASE_URL: login, PORT: '0' })
  if (process.exitCode === null) await once(process, 'exit')
  t.equal(process.exitCode, 1)
  t.match(said(), `It lacks ${newest.name}. Run \`npm run operator -- migrate\` first.`)
  t.notMatch(said(), /at .*src\//, 'a sentence, not a stack')
  await newest.restore()
})

t.test('A password that is wrong: not ready, told why, and ready once it is right', async (t) => {
  const { connection, token } = await addCaller(db)
  const wrong = new URL(login)
  wrong.password = 'not-this-one'
  const service = await startServiceProcess(t, { DATABASE_URL: wrong.href })
  t.equal(await service.ready(), 503)
  t.match(service.said(), 'password authentication failed')
  t.notMatch(service.said(), 'not-this-one')
  const ask = () =>
    fetch(service.url + connection.orders, { headers: { authorization: `Bearer ${token}` } })
  t.equal((await ask()).status, 503)

  await sql`alter role ${sql.id(wrong.username)} password 'not-this-one'`.execute(db)
  const back = performance.now()
  await until('the service is ready', async () => (await service.ready()) === 200)
  t.comment(`recovered after ${Math.round(performance.now() - back)} ms`)
  t.equal((await ask()).status, 200)
  t.equal(await service.end('SIGINT'), 0)
})

t.test('A server that is not there: not ready, live, and ended by a signal', async (t) => {
  const gone = new URL(login)
  gone.port = String(await freePort())
  const service = await startServiceProcess(t, { DATABASE_URL: gone.href })
  t.equal(await service.ready(), 503)
  t.match(service.said(), 'ECONNREFUSED')
  t.equal(await service.end('SIGINT'), 0)
})
