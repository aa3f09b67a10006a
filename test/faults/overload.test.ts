import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { createDatabase } from '../database.ts'
import { loginOfService, openAsOwner } from '../logins.ts'
import { isProblem } from '../problem.ts'
import { sendRaw } from '../raw-http.ts'
import { until } from './program.ts'
import { startServiceProcess } from './service-process.ts'
import { besiege, nothingAmiss } from './siege.ts'
import { fillWorld, learn, questionsOf } from './truth.ts'

/** More is asked than can be answered, or the asking never ends. */
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
  for (const clients of [4, 100]) {
    const states = new Set<number>()
    const end = besiege({ ...siege, clients })
    for (let stop = performance.now() + LOAD_MS; performance.now() < stop; await sleep(200)) {
      states.add(await service.ready())
    }
    const counts = await end()
    nothingAmiss(t, counts, `, with ${clients} clients`)
    t.equal(counts.refused > 0, clients > 20, 'only what is too much is refused')
    t.notOk(states.has(503), 'ready')
  }
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

t.test('A body that never comes: answered, and cut off', async (t) => {
  const service = await startServiceProcess(t, { DATABASE_URL: login, REQUEST_TIMEOUT_MS: '1000' })
  const [{ path, token }] = questions as [(typeof questions)[0]]
  const header = `Host: x\r\nAuthorization: Bearer ${token}\r\nContent-Length: 100\r\n\r\n`
  for (const method of ['GET', 'POST']) {
    const socket = connect(service.port, '127.0.0.1')
    socket.on('error', () => {})
    socket.write(`${method} ${path} HTTP/1.1\r\n${header}`)
    const [first] = await once(socket, 'data')
    t.match(String(first), method === 'GET' ? /^HTTP\/1\.1 200 / : /^HTTP\/1\.1 405 /)
    socket.resume()
    await once(socket, 'close')
  }
  const unfinished = `GET ${path} HTTP/1.1\r\nHost: x\r\n`
  const { answers, closed } = await sendRaw({ port: service.port, bytes: unfinished })
  const [answer] = answers
  if (answer) isProblem(t, answer, 'malformed_request')
  t.ok(answer || closed)
})
