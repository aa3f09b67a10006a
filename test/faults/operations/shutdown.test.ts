import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import t, { type Test } from 'tap'
import { createDatabase } from '../../support/database.ts'
import { loginOfService, openAsOwner } from '../../support/logins.ts'
import { until } from '../../support/until.ts'
import { type ServiceProcess, startServiceProcess } from '../support/processes/service-process.ts'
import { besiege, nothingAmiss } from '../support/siege.ts'
import { readSlowly } from '../support/slow-reader.ts'
import { fillPage, fillWorld, type Known, learn, questionsOf } from '../support/truth.ts'

/** How the process ends. */
const { url } = await createDatabase(t)
const db = openAsOwner(t, url)
const login = await loginOfService(t, db, url)
const questions = questionsOf(await fillWorld(db, 500))
// Some 25 MB, more than the buffers between two sockets hold.
const large = await fillPage(db, 2_000)

/** The backends that the service has on the server. */
async function backends(): Promise<number> {
  const { rows } = await sql<{ n: number }>`select count(*)::int as n from pg_stat_activity
    where usename = ${new URL(login).username}`.execute(db)
  return rows[0]?.n ?? 0
}

async function start(t: Test, environment: Record<string, string>): Promise<ServiceProcess> {
  const settings = { DATABASE_URL: login, MAX_EVENT_LOOP_DELAY_MS: '0', ...environment }
  const service = await startServiceProcess(t, settings)
  await until('the service is ready', async () => (await service.ready()) === 200)
  return service
}

const ended = async ({ process }: ServiceProcess) => {
  if (process.exitCode === null) await once(process, 'exit')
  return process.exitCode
}

const isRefused = ({ port }: ServiceProcess) =>
  new Promise<boolean>((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve(false)
    })
    socket.on('error', () => resolve(true))
  })

t.test('SIGTERM under load: readiness goes first, and no request is lost', async (t) => {
  const service = await start(t, { SHUTDOWN_DELAY_MS: '6000', SHUTDOWN_GRACE_MS: '20000' })
  const known = await learn(service.url, questions)
  const [page] = (await learn(service.url, [large])) as [Known]
  const end = besiege(t, { url: service.url, known, clients: 8, limitMs: 12_000 })
  await sleep(300)
  const slow = readSlowly({ ...page, port: service.port }, page.bytes / 12)
  await slow.begun

  service.process.kill('SIGTERM')
  await until('the service is not ready', async () => (await service.ready()) === 503)
  const { path = '', token } = known[0] ?? {}
  const answer = await fetch(service.url + path, { headers: { authorization: `Bearer ${token}` } })
  t.equal(answer.status, 200, 'still answered, while not ready any more')
  t.equal(answer.headers.get('connection'), 'close', 'and the client told to go elsewhere')
  // A balancer has noticed by now.
  await sleep(500)
  const counts = await end()
  nothingAmiss(t, counts)
  t.equal(counts.refused, 0, service.said())

  await until('new connections are refused', () => isRefused(service))
  t.equal(service.process.exitCode, null, 'while a slow reader is still served')
  t.match(page, await slow.end, 'who gets all of it')
  t.equal(await ended(service), 0)
  t.equal(await backends(), 0, 'no connection to the database is left')
})

t.test('SIGTERM without a request: idle connections keep nobody waiting', async (t) => {
  const service = await start(t, { SHUTDOWN_DELAY_MS: '0', SHUTDOWN_GRACE_MS: '60000' })
  const idle = connect(service.port, '127.0.0.1')
  const half = connect(service.port, '127.0.0.1')
  half.write('GET / HTTP/1.1\r\n')
  for (const socket of [idle, half]) socket.on('error', () => {}).resume()
  await once(half, 'connect')
  await learn(service.url, questions.slice(0, 1))
  const begin = performance.now()
  t.equal(await service.end('SIGTERM'), 0)
  t.ok(performance.now() - begin < 10_000, 'well within its grace')
  t.equal(await backends(), 0)
})

t.test('A reader who has stalled is cut off when the grace is over: exit code 1', async (t) => {
  const service = await start(t, { SHUTDOWN_DELAY_MS: '0', SHUTDOWN_GRACE_MS: '1500' })
  const stalled = readSlowly({ ...large, port: service.port }, 0)
  await stalled.begun
  t.equal(await service.end('SIGTERM'), 1, 'as the one answer was not sent whole')
  stalled.leave()
  t.match(service.said(), 'killed by timeout')
  await until('no connection to the database is left', async () => (await backends()) === 0)
})

t.test('A second signal ends the process at once: exit code 1', async (t) => {
  const service = await start(t, { SHUTDOWN_DELAY_MS: '60000' })
  service.process.kill('SIGTERM')
  await until('the service is not ready', async () => (await service.ready()) === 503)
  t.equal(await service.end('SIGTERM'), 1)
  await until('no connection to the database is left', async () => (await backends()) === 0)
})

t.test('Ctrl-C does not wait for balancers', async (t) => {
  const service = await start(t, { SHUTDOWN_DELAY_MS: '60000' })
  t.equal(await service.end('SIGINT'), 0)
  t.equal(await backends(), 0)
})
