import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { createDatabase } from '../../support/database.ts'
import { loginOfService, openAsOwner } from '../../support/logins.ts'
import { layWire } from '../support/servers/network.ts'
import { startBesieged, untilNotReady } from '../support/service-under-siege.ts'

/** A network that loses what the database says. */
const { url } = await createDatabase(t)
const db = openAsOwner(t, url)
const wire = await layWire(t, await loginOfService(t, db, url))
const { service, during } = await startBesieged(t, { db, login: wire.url })

const SILENT_MS = 8_000

t.test('The network falls silent, and then delivers what it held back', async (t) => {
  const { refused } = await during(t, async () => {
    wire.silence()
    await untilNotReady(service)
    await sleep(SILENT_MS)
    t.equal(await service.ready(), 503)
    wire.resume()
  })
  t.ok(refused > 0)
})

t.test('The network has forgotten all connections when it is back', async (t) => {
  const fault = async () => {
    wire.silence()
    await untilNotReady(service)
    wire.forget()
  }
  // More of them than the service has connections: all of these wait for answers that never come.
  await during(t, fault, { clients: 24 })
})

t.test('Connections are cut in the middle of answers', async (t) => {
  await during(t, async () => {
    wire.cut(20)
    await sleep(5_000)
    wire.cut(0)
  })
  t.ok(wire.cuts > 20, `${wire.cuts} connections were cut`)
})
