import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { createDatabase } from '../database.ts'
import { loginOfService, openAsOwner } from '../logins.ts'
import { until } from '../until.ts'
import { startServiceProcess } from './service-process.ts'
import { besiege, nothingAmiss } from './siege.ts'
import { fillWorld, learn, questionsOf } from './truth.ts'

/** More is asked than can be answered. */
const { url } = await createDatabase(t)
const db = openAsOwner(t, url)
const login = await loginOfService(t, db, url)
const questions = questionsOf(await fillWorld(db, 500))

const limitMs = 12_000
const LOAD_MS = 4_000

t.test('Beyond its capacity it sheds load, answers the rest, and stays ready', async (t) => {
  const service = await startServiceProcess(t, {
    DATABASE_URL: login,
    DATABASE_POOL_SIZE: '2',
    DATABASE_QUEUE: '10',
    MAX_REQUESTS: '20',
  })
  const known = await learn(service.url, questions)
  const siege = { url: service.url, known, limitMs, pauseMs: 0 }
  const [few, many] = [4, 100]
  const usualMs: number[] = []
  for (const clients of [few, many]) {
    const states = new Set<number>()
    const end = besiege(t, { ...siege, clients })
    for (let stop = performance.now() + LOAD_MS; performance.now() < stop; await sleep(200)) {
      states.add(await service.ready())
    }
    const counts = await end()
    nothingAmiss(t, counts, `, with ${clients} clients`)
    t.equal(counts.refused > 0, clients > 20, 'only what is too much is refused')
    t.notOk(states.has(503), 'ready')
    usualMs.push(counts.okMs / counts.ok)
    if (counts.refused > 0) {
      const refusalMs = counts.refusedMs / counts.refused
      t.comment(`an answer takes ${usualMs.join(' and ')} ms, a refusal ${refusalMs}`)
      t.ok(refusalMs < counts.okMs / counts.ok, 'a refusal comes sooner than an answer')
    }
  }
  // If all had waited, each would have taken as many times longer as there are more of them.
  t.ok((usualMs[1] as number) < ((usualMs[0] as number) * many) / few, 'not all became slower')
  t.match(service.said(), 'Too many requests are under way here')
  t.equal(service.process.exitCode, null)
})

t.test('Connections beyond MAX_SOCKETS are closed at once', async (t) => {
  const service = await startServiceProcess(t, { DATABASE_URL: login, MAX_SOCKETS: '5' })
  const idle = Array.from({ length: 5 }, () => connect(service.port, '127.0.0.1'))
  await Promise.all(idle.map((socket) => once(socket, 'connect')))
  // The connections that found out whether it is live may have to go first.
  const closes = async () => {
    const next = connect(service.port, '127.0.0.1')
    next.on('error', () => {}).resume()
    idle.push(next)
    return await Promise.race([once(next, 'close').then(() => true), sleep(500, false)])
  }
  await until('a connection is closed at once', closes)
  for (const socket of idle) socket.destroy()
  await until('others are taken again', async () => (await service.ready()) === 200)
})
