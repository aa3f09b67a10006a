import { openSync } from 'node:fs'
import { Agent, get } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import t, { type Test } from 'tap'
import { startIssuer } from '../support/issuer.ts'
import { openTestDatabase } from '../support/new-database.ts'
import type { Attack } from '../support/processes/attack.ts'
import { startProgram } from '../support/processes/program.ts'
import { startServiceProcess } from '../support/processes/service-process.ts'
import { addCaller, type Caller } from '../support/rows.ts'
import { startPlainHaproxy } from '../support/servers/proxies.ts'

const { db, login } = await openTestDatabase(t)
const others = await Promise.all(Array.from({ length: 200 }, () => addCaller(db)))
const attacker = await addCaller(db)
for (const { connection } of [...others, attacker]) {
  const rows = connection === attacker.connection ? 10_000 : 20
  await sql`insert into portfolio_transaction
      (connection_id, transaction_id, portfolio_id, type, operation_date_day)
    select ${connection.id}, gen_random_uuid(), gen_random_uuid(), 'BUY', '2025-01-01'
    from generate_series(1, ${rows})`.execute(db)
}
const issuer = await startIssuer(t)
await issuer.addKey('first')
const valid = await issuer.sign()

const SECONDS = Number(process.env.ATTACK_SECONDS ?? 5)
const { portfolio } = attacker.connection
const FIVE = Array.from({ length: 5 }, (_, n) => `127.2.0.${n + 1}`)
const base64 = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
const [header = '', payload = ''] = valid.split('.')

interface Scene extends Omit<Attack, 'port'> {
  proxy: boolean
  environment?: Record<string, string>
}

const jwt = (token: string): Scene => ({
  ...{ proxy: true, addresses: FIVE.slice(0, 1), connections: 190, path: portfolio, token },
  environment: issuer.environment,
})
const unknown = { path: portfolio, token: 'app_RANDOM' }
const own = { addresses: FIVE.slice(0, 1), token: attacker.token }

const attacks: Record<string, Scene> = {
  'large pages of one app': {
    ...own,
    proxy: false,
    connections: 100,
    path: `${portfolio}?limit=10000`,
  },
  'large pages of one app, HAProxy': {
    ...own,
    proxy: true,
    connections: 100,
    path: `${portfolio}?limit=10000`,
  },
  'unknown tokens of one address': {
    ...unknown,
    proxy: false,
    addresses: FIVE.slice(0, 1),
    connections: 400,
  },
  'unknown path of one address': {
    path: '/nope',
    token: 'none',
    proxy: false,
    addresses: FIVE.slice(0, 1),
    connections: 1_000,
  },
  'malformed path of one address': {
    path: '/%zz',
    token: 'none',
    proxy: false,
    addresses: FIVE.slice(0, 1),
    connections: 1_000,
  },
  'unknown tokens of five addresses, HAProxy': {
    ...unknown,
    proxy: true,
    addresses: FIVE,
    connections: 180,
  },
  'JWT without a signature, HAProxy': jwt(
    `${base64({ alg: 'none', kid: 'first' })}.${payload}.RANDOM`,
  ),
  'JWT with an unknown key, HAProxy': jwt(
    `${base64({ alg: 'ES256', kid: 'unknown' })}.${payload}.RANDOMRANDOM`,
  ),
  'JWT with a wrong signature, HAProxy': jwt(`${header}.${payload}.RANDOMRANDOM`),
  'an app over its quota': {
    ...own,
    proxy: false,
    connections: 400,
    path: attacker.connection.orders,
    environment: { RATE_LIMIT_PER_MINUTE: '100' },
  },
}

/** Starts the attack at the lowest priority. @returns a function that ends it and returns its counts */
async function startAttack(t: Test, attack: Attack) {
  const args = [
    '-n',
    '19',
    process.execPath,
    `${import.meta.dirname}/../support/processes/attack.ts`,
  ]
  const program = await startProgram(t, {
    command: 'nice',
    package: 'coreutils',
    args: [...args, JSON.stringify(attack)],
  })
  return async () => {
    await program.end('SIGKILL')
    return String(program.output().trimEnd().split('\n').at(-1))
  }
}

/** Sends one request a second for each app, from its own address. Half of the apps keep their connection. */
async function sendAsOthers(port: number, seconds: number) {
  const statuses: Record<string, number> = {}
  const durations: number[] = []
  const keptAgents = others.map(() => new Agent({ keepAlive: true }))
  const ask = async ({ token, connection }: Caller, n: number) => {
    const agent = n % 2 === 0 ? (keptAgents[n] as Agent) : new Agent()
    const options = { port, host: '127.0.0.1', localAddress: `127.1.0.${n + 1}`, agent }
    const headers = { authorization: `Bearer ${token}` }
    const begun = performance.now()
    const status = await new Promise<number | string>((resolve) => {
      const signal = AbortSignal.timeout(60_000)
      get({ ...options, path: connection.portfolio, headers, signal })
        .on('error', ({ message }) => resolve(message))
        .on('response', (response) => {
          response
            .resume()
            .on('close', () => resolve(response.complete ? Number(response.statusCode) : 'cut'))
        })
    })
    durations.push(performance.now() - begun)
    statuses[status] = (statuses[status] ?? 0) + 1
  }
  const requests: Promise<void>[] = []
  const begun = performance.now()
  for (let n = 0; n < seconds * others.length; n += 1) {
    const app = n % others.length
    requests.push(ask(others[app] as Caller, app))
    await sleep(Math.max(0, begun + ((n + 1) * 1_000) / others.length - performance.now()))
  }
  await Promise.all(requests)
  for (const agent of keptAgents) agent.destroy()
  durations.sort((a, b) => a - b)
  const quantile = (part: number) =>
    Math.round(durations[Math.ceil(part * durations.length) - 1] ?? 0)
  return { sent: requests.length, statuses, p50: quantile(0.5), p99: quantile(0.99) }
}

for (const [name, { proxy, environment, ...attack }] of Object.entries(attacks)) {
  if (!name.includes(process.env.ATTACK ?? '')) continue
  t.test(`200: other apps during an attack: ${name}`, async (t) => {
    const settings = { DATABASE_URL: login, LOG_LEVEL: 'info', ...environment }
    const service = await startServiceProcess(t, settings, undefined, openSync('/dev/null', 'w'))
    const front = proxy ? await startPlainHaproxy(t, [service.port, service.port]) : service
    const port = Number(new URL(front.url).port)
    await sendAsOthers(port, 1)
    const end = await startAttack(t, { ...attack, port })
    await sleep(1_000)
    const { sent, statuses, p50, p99 } = await sendAsOthers(port, SECONDS)
    const counts = await end()
    const down = 'log' in front ? (front.log().match(/is DOWN/g)?.length ?? 0) : 0
    process.stderr.write(
      `${name}: ${sent} sent, ${JSON.stringify(statuses)}, p50 ${p50} ms, p99 ${p99} ms, DOWN ${down}; attack ${counts}\n`,
    )
    t.same(statuses, { 200: sent })
    t.equal(down, 0, 'HAProxy never excludes the instance')
  })
}
