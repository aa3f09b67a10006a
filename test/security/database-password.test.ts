import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import t, { type Test } from 'tap'
import { databaseOptions } from '../../src/app.ts'
import { readConfig } from '../../src/config.ts'
import { openDatabase } from '../../src/postgres/database.ts'
import { missingMigrations } from '../../src/postgres/migrations.ts'
import { operatorHere } from '../support/operator-process.ts'

const PASSWORD = 'a-secret-of-the-database'
/** Requests for a password: authentication messages 3 and 5 of PostgreSQL's protocol. */
const REQUESTS = {
  'in clear text': Buffer.from('R\0\0\0\x08\0\0\0\x03', 'latin1'),
  'as MD5': Buffer.from('R\0\0\0\x0c\0\0\0\x05salt', 'latin1'),
}

for (const [form, request] of Object.entries(REQUESTS)) {
  t.test(`server that asks for the password ${form}, without TLS: it gets none`, async (t) => {
    const server = await startFake(t, request)
    const DATABASE_URL = `postgresql://owner:${PASSWORD}@127.0.0.1:${server.port}/investments`
    const { code, stderr } = await operatorHere(['app', 'list'], { DATABASE_URL })
    t.equal(code, 1)
    t.match(stderr, `asks for the password ${form}, and the connection has no TLS`)
    t.notMatch(stderr, PASSWORD)

    const db = openDatabase(databaseOptions(readConfig({ DATABASE_URL }), DATABASE_URL))
    t.teardown(() => db.close())
    const error: Error = await missingMigrations(db).then(
      () => new Error('connected'),
      (thrown) => thrown,
    )
    t.match(String(error.cause ?? error), `asks for the password ${form}`, 'the service')
    t.ok(server.attempts() >= 2, 'both have connected')
    t.same(server.passwords(), [], 'no message with a password')
  })
}

/** Starts a server that answers the first message of a client with `request`, and keeps what follows. */
async function startFake(t: Test, request: Buffer) {
  let attempts = 0
  const received: Buffer[] = []
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => {
      attempts += 1
      socket.write(request)
      socket.on('data', (data) => received.push(data))
    })
  }).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    attempts: () => attempts,
    passwords: () => received.map(String).filter((data) => data.startsWith('p')),
  }
}
