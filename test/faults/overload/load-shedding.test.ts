import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { createDatabase } from '../../support/database.ts'
import { loginOfService, openAsOwner } from '../../support/logins.ts'
import { until } from '../../support/until.ts'
import { startServiceProcess } from '../support/processes/service-process.ts'
import { besiege, nothingAmiss } from '../support/siege.ts'
import { fillWorld, learn, questionsOf } from '../support/truth.ts'

/** More is asked than can be answered. */
const { url } = await createDatabase(t)
const db = openAsOwner(t, url)
const login = await loginOfService(t, db, url)
const questions = questionsOf(await fillWorld(db, 500))

const limitMs = 12_000
const LOAD_MS = 4_000
const MAX_REQUESTS = 20
const FEW = 4
const MANY = 100

t.test('Beyond its capacity it sheds load, answers the rest, and stays ready', async (t) => {
  const service = await startServiceProcess(t, {
    DATABASE_URL: login,
    DATABASE_POOL_SIZE: '2',
    DATABASE_QUEUE: '10',
    MAX_REQUESTS: String(MAX_REQUESTS),
    // The clients keep this machine so busy that the service looks late.
    MAX_EVENT_LOOP_DELAY_MS: '0',
  })
  const known = await learn(service.url, questions)
  const load = async (clients: number) => {
    const states = new Set<number>()
    const end = besiege(t, { url: service.url, known, clients, limitMs, pauseMs: 0 })
    for (let stop = performance.now() + LOAD_MS; performance.now() < stop; await sleep(200)) {
      states.add(await service.ready())
    }
    const counts = await end()
    nothingAmiss(t, counts, `, with ${clients} clients`)
    t.same([...states], [200], 'ready')
    return counts
  }
  const few = await load(FEW)
  // Not one is refused, but for a new connection that a busy machine does not open in two seconds.
  t.ok(few.refused <= few.sent / 100, 'only what is too much is refused')
  const many = await load(MANY)
  t.ok(many.refused > 0)

  const [fewMs, manyMs] = [few.okMs / few.ok, many.okMs / many.ok]
  const refusalMs = many.refusedMs / many.refused
  const times = `an answer takes ${fewMs} and ${manyMs} ms, a refusal ${refusalMs}`
  t.ok(refusalMs < manyMs, `a refusal comes sooner than an answer: ${times}`)
  // No more than MAX_REQUESTS share the service, which is five times as many; but all clients share its
  // processors, and ask again at once when they are refused: it was ten to sixteen times as long. Had all
  // waited, that would come on top of as many times as there are more of them.
  t.ok(manyMs < (fewMs * MANY) / FEW, `not all became slower: ${times}`)
  t.match(service.said(), 'Too many requests are in flight')
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
