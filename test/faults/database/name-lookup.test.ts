import { createHook } from 'node:async_hooks'
import { pbkdf2 } from 'node:crypto'
import { promisify } from 'node:util'
import t from 'tap'
import { createDatabase } from '../../support/database.ts'
import { loginOfService, openAsOwner } from '../../support/logins.ts'
import { addCaller } from '../../support/rows.ts'
import { startService } from '../../support/service.ts'

/** A name server that does not answer must not fill the threads with its questions. */
const { url } = await createDatabase(t)
const db = openAsOwner(t, url)

const hash = promisify(pbkdf2)
let lookUps = 0
const hook = createHook({
  init: (_id, type) => {
    if (type === 'GETADDRINFOREQWRAP') lookUps += 1
  },
})
t.teardown(() => hook.disable())

t.test('Connections that open at the same time share one look-up of the name', async (t) => {
  const named = new URL(await loginOfService(t, db, url))
  named.hostname = 'localhost'
  const environment = { DATABASE_URL: named.href }
  const { get, database } = await startService(t, { databaseUrl: url, environment })
  const { connection, token } = await addCaller(db)
  const ask = () => get(connection.orders, { token })
  hook.enable()
  // Keeps the threads that look names up busy for a moment, as a name server that is slow would.
  const busy = Array.from({ length: 4 }, () => hash('x', 'x', 600_000, 64, 'sha512'))
  const answers = await Promise.all(Array.from({ length: 40 }, ask))
  await Promise.all(busy)
  hook.disable()
  t.ok(answers.every(({ status }) => status === 200))
  const { connections } = database.state().primary
  // One that opens a moment later finds the look-up done, and begins another.
  t.ok(lookUps < connections / 2, `${lookUps} for ${connections} connections`)
})

t.test('A name that does not exist is a 503, and looked up again later', async (t) => {
  const named = new URL(await loginOfService(t, db, url))
  named.hostname = 'no-such-server.invalid'
  const environment = { DATABASE_URL: named.href }
  const { get } = await startService(t, { databaseUrl: url, environment })
  lookUps = 0
  hook.enable()
  const { connection, token } = await addCaller(db)
  for (const _ of [1, 2]) {
    const ask = () => get(connection.orders, { token })
    const answers = await Promise.all(Array.from({ length: 20 }, ask))
    t.ok(answers.every(({ status }) => status === 503))
  }
  hook.disable()
  t.ok(lookUps >= 2)
})
