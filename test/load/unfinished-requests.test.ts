import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import { addSampleData, recordOk, requestsOf } from '../support/golden-responses.ts'
import { assertNoErrors, startGoldenLoad } from '../support/load.ts'
import { openTestDatabase } from '../support/new-database.ts'
import { isProblem } from '../support/problem.ts'
import { peakMemory, startServiceProcess } from '../support/processes/service-process.ts'
import { type RawResponse, sendRaw } from '../support/raw-http.ts'
import { within } from '../support/within.ts'

const { db, login } = await openTestDatabase(t)
const requests = requestsOf(await addSampleData(db, 500))
const [{ path, token } = { path: '/', token: '' }] = requests

t.test('200: complete requests, while 1000 clients never end their request', async (t) => {
  const service = await startServiceProcess(t, {
    DATABASE_URL: login,
    // The clients keep this machine so busy that the event loop of the service is late.
  })
  const golden = await recordOk(service.url, requests)
  const before = await peakMemory(service)
  const unfinished = Array.from({ length: 1_000 }, (_, index) =>
    sendHeadForever(service.port, index),
  )
  await within('each client has sent bytes', Promise.all(unfinished.map(({ sent }) => sent)))
  const stop = startGoldenLoad(t, { url: service.url, golden, clients: 4 })
  t.equal(await service.ready(), 200)
  const closed = Promise.all(unfinished.map(({ response }) => response))
  const responses = await within('the service has closed each connection', closed)
  const report = await stop()
  const grown = (await peakMemory(service)) - before
  assertNoErrors(t, report, `, memory grew by ${grown} MB`)
  const { unavailable, sent } = report
  // A busy machine may fail to open a connection to PostgreSQL within two seconds.
  t.ok(unavailable <= sent / 10, `${unavailable} of ${sent} complete requests got 503`)
  t.ok(responses.every((text) => /^($|HTTP.1.1 400 )/.test(text)))
  t.match(responses.join(''), 'malformed_request')
  t.ok(grown < 200, `${grown} MB`)
})

/** Sends the head of a request without end. `response` resolves when the service disconnects. */
function sendHeadForever(port: number, index: number) {
  const socket = connect(port, '127.0.0.1').setEncoding('latin1')
  let received = ''
  socket
    .on('error', () => {})
    .on('data', (text) => {
      received += text
    })
  const head = `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nX-Long: `
  const drip = setInterval(() => socket.write('x'), 500)
  const connected = new Promise((resolve) => {
    socket.once('connect', () => resolve(socket.write(head + 'x'.repeat(10 * index))))
  })
  const response = new Promise<string>((resolve) => {
    socket.once('close', () => {
      clearInterval(drip)
      resolve(received)
    })
  })
  return { sent: Promise.race([connected, response]), response }
}

t.test('A body never arrives: the client gets a response and is disconnected', async (t) => {
  const service = await startServiceProcess(t, { DATABASE_URL: login })
  const header = `Host: x\r\nAuthorization: Bearer ${token}\r\nContent-Length: 100\r\n\r\n`
  for (const method of ['GET', 'POST']) {
    const socket = connect(service.port, '127.0.0.1')
    socket.on('error', () => {})
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.write(`${method} ${path} HTTP/1.1\r\n${header}`)
    const [first] = await within(`a response to ${method}`, once(socket, 'data'))
    t.match(String(first), method === 'GET' ? /^HTTP\/1\.1 400 / : /^HTTP\/1\.1 405 /)
    socket.resume()
    await within(`the service disconnects after ${method}`, closed)
  }
  const unfinished = `GET ${path} HTTP/1.1\r\nHost: x\r\n`
  const { responses } = await sendRaw({ port: service.port, bytes: unfinished })
  isProblem(t, responses[0] as RawResponse, 'malformed_request')
})
