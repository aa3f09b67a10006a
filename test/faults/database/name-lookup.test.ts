import { createHook } from 'node:async_hooks'
import { pbkdf2 } from 'node:crypto'
import { promisify } from 'node:util'
import t from 'tap'
import { createDatabase } from '../../support/database.ts'
import { loginOfService, openAsOwner } from '../../support/logins.ts'
import { addCaller } from '../../support/rows.ts'
import { startService } from '../../support/service.ts'

/** A slow name server must not occupy all threads of the process. */
const { url } = await createDatabase(t)
const db = openAsOwner(t, url)

const hash = promisify(pbkdf2)
let lookups = 0
const hook = createHook({
  init: (_id, type) => {
    if (type === 'GETADDRINFOREQWRAP') lookups += 1
  },
})
t.teardown(() => hook.disable())

/** Starts the service with this host name in DATABASE_URL. */
async function serviceWith(hostname: string) {
  const login = new URL(await loginOfService(t, db, url))
  login.hostname = hostname
  const { connection, token } = await addCaller(db)
  // Enough reads in flight for ten connections and more, as several share one.
  const environment = { DATABASE_URL: login.href, DATABASE_POOL_SIZE: '40' }
  const { get, database } = await startService(t, { databaseUrl: url, environment })
  return { get: () => get(connection.orders, { token }), database }
}

t.test('200: connections that open together share a lookup of the host name', async (t) => {
  const { get, database } = await serviceWith('localhost')
  hook.enable()
  // Occupies the threads of the lookups for a moment, as a slow name server would.
  const busy = Array.from({ length: 4 }, () => hash('x', 'x', 600_000, 64, 'sha512'))
  const responses = await Promise.all(Array.from({ length: 160 }, get))
  await Promise.all(busy)
  hook.disable()
  t.ok(responses.every(({ status }) => status === 200))
  const { connections } = database.state().primary
  // A connection that opens after the lookup has ended starts another one: on a slow machine, several do.
  t.ok(lookups < connections, `${lookups} lookups for ${connections} connections`)
})

t.test('503: the host name does not exist; the service looks it up again later', async (t) => {
  const { get } = await serviceWith('no-such-server.invalid')
  lookups = 0
  hook.enable()
  for (const _ of [1, 2]) {
    const responses = await Promise.all(Array.from({ length: 20 }, get))
    t.ok(responses.every(({ status }) => status === 503))
  }
  hook.disable()
  t.ok(lookups >= 2)
})
