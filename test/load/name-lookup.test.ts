import { createHook } from 'node:async_hooks'
import { once } from 'node:events'
import t from 'tap'
import { createSockets } from '../../src/postgres/wire/client.ts'
import { createDatabase } from '../support/database.ts'
import { loginOfService, openAsOwner } from '../support/logins.ts'
import { addCaller } from '../support/rows.ts'
import { startService } from '../support/service.ts'

/** A slow name server must not occupy all threads of the process. */
const { url } = await createDatabase(t)
const db = openAsOwner(t, url)

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
  const environment = { DATABASE_URL: login.href, DATABASE_POOL_SIZE: '40' }
  const { get } = await startService(t, { databaseUrl: url, environment })
  return { get: () => get(connection.orders, { token }) }
}

t.test('connections that open together: one lookup of the host name', async (t) => {
  const createSocket = createSockets()
  const sockets = Array.from({ length: 10 }, () => createSocket())
  lookups = 0
  hook.enable()
  const connected = sockets.map((socket) => once(socket, 'connect'))
  for (const socket of sockets) socket.connect(Number(new URL(url).port), 'localhost')
  await Promise.all(connected)
  hook.disable()
  for (const socket of sockets) socket.destroy()
  t.equal(lookups, 1)
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
