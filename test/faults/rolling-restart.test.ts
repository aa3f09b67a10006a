import { Agent, get } from 'node:http'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import t, { type Test } from 'tap'
import { seed } from '../../seeds/seed.ts'
import { createDatabase } from '../database.ts'
import { loginOfService, openAsOwner } from '../logins.ts'
import { startService } from '../service.ts'
import { demoRequests } from './demo-answers.ts'
import { freePort } from './free-port.ts'
import { allAnswered, keepAsking } from './load.ts'
import { until } from './program.ts'
import { type StartProxy, startHaproxy, startNginx } from './proxies.ts'
import { launchService } from './service-process.ts'

interface Expected {
  path: string
  token: string
  status: number
  text: string
}

const CLIENTS = 8

const { url: databaseUrl } = await createDatabase(t)
const pool = new pg.Pool({ connectionString: databaseUrl, max: 2 })
await seed(pool)
await pool.end()
const login = await loginOfService(t, openAsOwner(t, databaseUrl), databaseUrl)
const expected = await truth(t)

/** The truth about the demo world; without the errors, whose identifier is another one each time. */
async function truth(t: Test): Promise<Expected[]> {
  const service = await startService(t, { databaseUrl })
  const all: Expected[] = []
  for (const { path, token } of demoRequests) {
    const { status, text } = await service.get(path, { token })
    if (status === 200) all.push({ path, token, status, text })
  }
  await service.close()
  return all
}

const proxies: Record<string, StartProxy> = { HAProxy: startHaproxy, nginx: startNginx }
for (const [name, startProxy] of Object.entries(proxies)) {
  t.test(`Behind ${name}, two instances are restarted and no request is lost`, async (t) => {
    const instances = [await startInstance(t), await startInstance(t)] as const
    const url = await startProxy(t, [instances[0].port, instances[1].port])
    // Until it has asked each of them whether it is ready.
    await sleep(1_500)
    const agents = Array.from(
      { length: CLIENTS },
      () => new Agent({ keepAlive: true, maxSockets: 1 }),
    )
    let turn = 0
    const stop = keepAsking(t, CLIENTS, async (client) => {
      turn += 1
      const wanted = expected[turn % expected.length] as Expected
      const fault = await ask(url, agents[client] as Agent, wanted)
      await sleep(20)
      return fault
    })
    for (const instance of instances) {
      await sleep(500)
      const start = performance.now()
      t.equal(await instance.end(), 0, 'exit code')
      t.comment(`ended within ${Math.round(performance.now() - start)} ms of SIGTERM`)
      await instance.start()
    }
    // As long as it may take until the last one is asked again.
    await sleep(2_000)
    allAnswered(t, await stop())
    for (const agent of agents) agent.destroy()
  })
}

// On a machine that is busy with other tests, the one that is left would shed load, as it should.
const PATIENT = {
  DATABASE_WAIT_MS: '10000',
  STATEMENT_TIMEOUT_MS: '10000',
  MAX_EVENT_LOOP_DELAY_MS: '0',
}

/** An instance that comes back on its port; start() returns when it is ready. */
async function startInstance(t: Test) {
  const port = await freePort()
  const environment = { DATABASE_URL: login, PORT: String(port), LOG_LEVEL: 'warn', ...PATIENT }
  let program = await launchService(t, environment)
  const ready = () =>
    until('the instance is ready', async () => {
      if (program.process.exitCode !== null) throw new Error(program.said())
      return await fetch(`http://127.0.0.1:${port}/health/ready`).then(
        ({ status }) => status === 200,
        () => false,
      )
    })
  await ready()
  const start = async () => {
    program = await launchService(t, environment)
    await ready()
  }
  return { port, start, end: () => program.end('SIGTERM') }
}

/** Asks on the one connection of its client, without a second try; tells what is wrong. */
async function ask(url: string, agent: Agent, wanted: Expected): Promise<string | undefined> {
  const headers = { authorization: `Bearer ${wanted.token}` }
  const { promise, resolve, reject } = Promise.withResolvers<string | undefined>()
  const request = get(url + wanted.path, { agent, headers, timeout: 20_000 }, (response) => {
    text(response).then((body) => {
      const same = response.statusCode === wanted.status && body === wanted.text
      resolve(same ? undefined : `${response.statusCode} ${body.slice(0, 200)}`)
    }, reject)
  })
  request.on('error', reject)
  request.on('timeout', () => request.destroy(new Error('no answer in time')))
  return await promise
}
