import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import { createDatabase } from '../../support/database.ts'
import { loginOfService, openAsOwner } from '../../support/logins.ts'
import { isProblem } from '../../support/problem.ts'
import { type RawAnswer, sendRaw } from '../../support/raw-http.ts'
import { peakMemory, startServiceProcess } from '../support/processes/service-process.ts'
import { besiege, nothingAmiss } from '../support/siege.ts'
import { fillWorld, learn, questionsOf } from '../support/truth.ts'

/** Clients that begin to ask, and never end. */
const { url } = await createDatabase(t)
const db = openAsOwner(t, url)
const login = await loginOfService(t, db, url)
const questions = questionsOf(await fillWorld(db, 500))

t.test('A thousand requests without an end take no room from others', async (t) => {
  const service = await startServiceProcess(t, {
    DATABASE_URL: login,
    REQUEST_TIMEOUT_MS: '3000',
    // The clients keep this machine so busy that the service looks late.
    MAX_EVENT_LOOP_DELAY_MS: '0',
  })
  const known = await learn(service.url, questions)
  const before = await peakMemory(service)
  const half = Array.from({ length: 1_000 }, (_, index) => sendHalf(service.port, index))
  await Promise.all(half.map(({ sent }) => sent))
  const end = besiege(t, { url: service.url, known, clients: 4, limitMs: 12_000 })
  t.equal(await service.ready(), 200)
  const answers = await Promise.all(half.map(({ answer }) => answer))
  const counts = await end()
  const grown = (await peakMemory(service)) - before
  nothingAmiss(t, counts, `, beside 1000 half requests; memory grew by ${grown} MB`)
  // Not one is refused, but for a new connection that a busy machine does not open in two seconds.
  t.ok(counts.refused <= counts.sent / 100, 'who asks properly is served')
  t.ok(answers.every((text) => /^($|HTTP.1.1 400 )/.test(text)))
  t.match(answers.join(''), 'malformed_request', 'they are told why')
  t.ok(grown < 200, `${grown} MB`)
})

/**
 * A request whose head goes on, a few bytes at a time, and never ends.
 * @returns `answer`: what came until the other side closed
 */
function sendHalf(port: number, index: number) {
  const [{ path, token }] = questions as [(typeof questions)[0]]
  const socket = connect(port, '127.0.0.1').setEncoding('latin1')
  let answer = ''
  socket
    .on('error', () => {})
    .on('data', (text) => {
      answer += text
    })
  const head = `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nX-Long: `
  const drip = setInterval(() => socket.write('x'), 500)
  const connected = new Promise((resolve) => {
    socket.once('connect', () => resolve(socket.write(head + 'x'.repeat(10 * index))))
  })
  const closed = new Promise<string>((resolve) => {
    socket.once('close', () => {
      clearInterval(drip)
      resolve(answer)
    })
  })
  return { sent: Promise.race([connected, closed]), answer: closed }
}

t.test('A body that never comes: answered, and cut off', async (t) => {
  const service = await startServiceProcess(t, { DATABASE_URL: login, REQUEST_TIMEOUT_MS: '1000' })
  const [{ path, token }] = questions as [(typeof questions)[0]]
  const header = `Host: x\r\nAuthorization: Bearer ${token}\r\nContent-Length: 100\r\n\r\n`
  for (const method of ['GET', 'POST']) {
    const socket = connect(service.port, '127.0.0.1')
    socket.on('error', () => {})
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.write(`${method} ${path} HTTP/1.1\r\n${header}`)
    const [first] = await once(socket, 'data')
    t.match(String(first), method === 'GET' ? /^HTTP\/1\.1 200 / : /^HTTP\/1\.1 405 /)
    socket.resume()
    await closed
  }
  const unfinished = `GET ${path} HTTP/1.1\r\nHost: x\r\n`
  const { answers } = await sendRaw({ port: service.port, bytes: unfinished })
  isProblem(t, answers[0] as RawAnswer, 'malformed_request')
})
