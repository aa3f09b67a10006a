import { sql } from 'kysely'
import t from 'tap'
import { freePort } from '../../tools/embedded-postgres/free-port.ts'
import { sendAndRead } from '../support/golden-responses.ts'
import { openTestDatabase } from '../support/new-database.ts'
import { startServiceProcess, untilReadyIs } from '../support/processes/service-process.ts'
import { addCaller } from '../support/rows.ts'

const { db, login } = await openTestDatabase(t)

t.test('503: the password is wrong; the service recovers when it is right', async (t) => {
  const { connection, token } = await addCaller(db)
  const wrong = new URL(login)
  wrong.password = 'not-this-one'
  const service = await startServiceProcess(t, { DATABASE_URL: wrong.href })
  t.equal(await service.ready(), 503)
  t.match(service.output(), 'password authentication failed')
  t.notMatch(service.output(), 'not-this-one')
  const request = { path: connection.orders, token }
  t.equal((await sendAndRead(service.url, request)).status, 503)

  await sql`alter role ${sql.id(wrong.username)} password 'not-this-one'`.execute(db)
  const changed = performance.now()
  await untilReadyIs(service, 200)
  t.comment(`recovered after ${Math.round(performance.now() - changed)} ms`)
  t.equal((await sendAndRead(service.url, request)).status, 200)
  t.equal(await service.end('SIGINT'), 0)
})

t.test('Not ready: the server does not exist; the service is live and stops cleanly', async (t) => {
  const missing = new URL(login)
  missing.port = String(await freePort())
  const service = await startServiceProcess(t, { DATABASE_URL: missing.href })
  t.equal(await service.ready(), 503)
  t.match(service.output(), 'ECONNREFUSED')
  t.equal(await service.end('SIGINT'), 0)
})
