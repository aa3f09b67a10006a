import { sql } from 'kysely'
import t from 'tap'
import { freePort } from '../../../tools/embedded-postgres/free-port.ts'
import { addCaller } from '../../support/rows.ts'
import { hideNewestMigration } from '../../support/schema-behind.ts'
import { openTestDatabase } from '../support/database.ts'
import { sendAndRead } from '../support/golden-responses.ts'
import {
  launchService,
  startServiceProcess,
  untilReadyIs,
} from '../support/processes/service-process.ts'

const { db, login } = await openTestDatabase(t)

t.test('Exit code 1: the schema lacks a migration, and a message names the command', async (t) => {
  const newest = await hideNewestMigration(db)
  const { ended, output } = await launchService(t, { DATABASE_URL: login, PORT: '0' })
  t.equal(await ended(), 1)
  t.match(output(), `It lacks ${newest.name}. Run \`npm run operator -- migrate\` first.`)
  t.notMatch(output(), /at .*src\//, 'no stack trace')
  await newest.restore()
})

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
