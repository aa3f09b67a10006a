import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { openTestDatabase } from '../support/database.ts'
import { startServiceUnderLoad } from '../support/load.ts'
import { untilReadyIs } from '../support/processes/service-process.ts'
import { startNetwork } from '../support/servers/network.ts'

const { db, login } = await openTestDatabase(t)
const network = await startNetwork(t, login)
const { service, during } = await startServiceUnderLoad(t, { db, login: network.url })

const PAUSE_MS = 8_000

t.test('503: the network pauses; later it delivers the delayed data', async (t) => {
  const { unavailable } = await during(t, async () => {
    network.pause()
    await untilReadyIs(service, 503)
    await sleep(PAUSE_MS)
    t.equal(await service.ready(), 503)
    network.resume()
  })
  t.ok(unavailable > 0)
})

t.test('503: the network pauses; later it works for new connections only', async (t) => {
  const fault = async () => {
    network.pause()
    await untilReadyIs(service, 503)
    network.forget()
  }
  // With more clients than connections, each connection waits for data that never arrives.
  await during(t, fault, { clients: 24 })
})

t.test('Connections break in the middle of a response: no client gets a partial one', async (t) => {
  await during(t, async () => {
    network.cutEvery(20)
    await sleep(5_000)
    network.cutEvery(0)
  })
  t.ok(network.cuts > 20, `${network.cuts} broken connections`)
})
