import { once } from 'node:events'
import { get } from 'node:http'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import t, { type Test } from 'tap'
import { Tenant } from '../../src/limits/tenants.ts'
import { tokenHash } from '../../src/postgres/tokens.ts'
import { withBlockedStatements, withSlowStatements } from '../support/blocked-statements.ts'
import { startIssuer } from '../support/issuer.ts'
import { scrape } from '../support/metrics.ts'
import {
  addApp,
  addCaller,
  addConnection,
  addPortfolioTransactions,
  addToken,
  type Caller,
} from '../support/rows.ts'
import { type Service, startService } from '../support/service.ts'
import { until } from '../support/until.ts'

const CLIENTS = 200

const MEASURED = 10
/** Large requests of one app at once. One connection serves them. */
const LARGE = 30

/** Sends requests of one app, one after the other. @returns the statuses */
async function statusesOf(service: Service, { token, connection }: Caller): Promise<number[]> {
  const statuses: number[] = []
  for (let i = 0; i < MEASURED; i += 1) {
    statuses.push((await service.get(connection.portfolio, { token })).status)
  }
  return statuses
}

/**
 * Starts clients that send a request after each response.
 * @returns the number of responses of each status
 */
function startFlood(
  t: Test,
  { port }: Service,
  path: string,
  tokenOf: (request: number) => string,
) {
  const counts = new Map<number, number>()
  let sent = 0
  const request = () => {
    sent += 1
    return `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${tokenOf(sent)}\r\n\r\n`
  }
  const sockets = Array.from({ length: CLIENTS }, () => {
    const socket = connect({ port, host: '127.0.0.1' })
    let received = ''
    const send = () => socket.write(request())
    socket.setEncoding('latin1').on('error', () => {})
    socket.on('connect', send)
    socket.on('data', (chunk) => {
      received += chunk
      for (const [line, status] of received.matchAll(/HTTP\/1\.1 (\d{3})/g)) {
        counts.set(Number(status), (counts.get(Number(status)) ?? 0) + 1)
        received = received.slice(received.indexOf(line) + line.length)
        send()
      }
    })
    return socket
  })
  const stop = () => {
    for (const socket of sockets) socket.destroy()
  }
  t.teardown(stop)
  return { counts, stop }
}

const countOf = (statuses: number[], status: number) =>
  statuses.filter((each) => each === status).length

t.test('503: one app has at most three quarters of MAX_REQUESTS in flight', async (t) => {
  const environment = {
    STATEMENT_TIMEOUT_MS: '60000',
    MAX_REQUESTS: '20',
    DATABASE_POOL_SIZE: '40',
    METRICS_PORT: '0',
  }
  const service = await startService(t, { environment, logLevel: 'info' })
  const [busy, other] = [await addCaller(service.db), await addCaller(service.db)]
  await addPortfolioTransactions(service.db, busy.connection, {})
  const send = async ({ token, connection }: Caller) =>
    (await service.get(connection.portfolio, { token })).status
  const orders = async ({ token, connection }: Caller) =>
    (await service.get(connection.orders, { token })).status
  const twin = { ...busy, token: await addToken(service.db, busy.appId) }
  t.same([await send(busy), await send(twin), await orders(other)], [200, 200, 200])
  let rejected = 0
  let responses: Promise<number>[] = []
  await withBlockedStatements(t, service.db, async () => {
    responses = Array.from({ length: 30 }, async (_, i) => {
      const status = await send(i % 2 === 0 ? busy : twin)
      if (status === 503) rejected += 1
      return status
    })
    await until('the app has its share', () => rejected >= 15)
    await until('all connections are open', async () => {
      const { rows } = await sql`select from pg_stat_activity where datname = current_database()
        and application_name = 'investment-data-query-service'`.execute(service.db)
      return rows.length === service.database.state().primary.connections
    })
    // Blocked connections get no further reads after 250 ms. A read behind a blocked one would wait.
    await sleep(1_000)
    for (let i = 0; i < 20; i += 1) t.equal(await orders(other), 200)
    t.equal(rejected, 15)
  })
  t.equal(countOf(await Promise.all(responses), 200), 15)
})

t.test('200: 20 concurrent requests of a new caller', async (t) => {
  const service = await startService(t, { logLevel: 'info' })
  const { token, connection } = await addCaller(service.db)
  await sql`create policy slow on app_token as restrictive for select
    using ((select pg_sleep(0.2)) is not null)`.execute(service.db)
  const send = async () => (await service.get(connection.orders, { token })).status
  const statuses = await Promise.all(Array.from({ length: 20 }, send))
  t.equal(countOf(statuses, 200), 20)
})

t.test('200: a token that is renewed during the read of another request', async (t) => {
  const environment = { STATEMENT_TIMEOUT_MS: '60000', METRICS_PORT: '0' }
  const service = await startService(t, { environment, logLevel: 'info' })
  const { appId, connection } = await addCaller(service.db)
  const token = await addToken(service.db, appId, { expires_at: new Date(0) })
  const send = async () => (await service.get(connection.orders, { token })).status
  const inFlight = async () => (await scrape(service)).get('http_requests_in_flight')
  let responses: Promise<number>[] = []
  const use = async () => {
    responses = [send()]
    await until('a read finds the expired token', async () => {
      const { rows } = await sql`select from pg_stat_activity where datname = current_database()
        and application_name = 'investment-data-query-service' and wait_event = 'PgSleep'`.execute(
        service.db,
      )
      return rows.length === 1
    })
    await service.db
      .updateTable('app_token')
      .set({ expires_at: null })
      .where('token_hash', '=', tokenHash(token))
      .execute()
    responses.push(send())
    await until('the next request has arrived', async () => (await inFlight()) === 2)
  }
  await withBlockedStatements(t, service.db, use, 'app_token')
  t.same(await Promise.all(responses), [401, 200])
})

t.test('503: unknown callers of one address have three quarters of MAX_REQUESTS', async (t) => {
  const environment = {
    STATEMENT_TIMEOUT_MS: '60000',
    MAX_REQUESTS: '20',
  }
  const service = await startService(t, { environment, logLevel: 'info' })
  const { appId, connection } = await addCaller(service.db)
  const tokens = await Promise.all(Array.from({ length: 30 }, () => addToken(service.db, appId)))
  let rejected = 0
  let responses: Promise<number>[] = []
  const use = async () => {
    responses = tokens.map(async (token) => {
      const { status } = await service.get(connection.orders, { token })
      if (status === 503) rejected += 1
      return status
    })
    await until('the address has its share', () => rejected >= 15)
    t.equal(rejected, 15)
  }
  await withBlockedStatements(t, service.db, use, 'app_token')
  t.equal(countOf(await Promise.all(responses), 200), 15)
})

t.test('200: clients that disconnect before their token is verified take no share', async (t) => {
  const issuer = await startIssuer(t)
  await issuer.addKey('first')
  const environment = { ...issuer.environment, MAX_REQUESTS: '20', METRICS_PORT: '0' }
  const service = await startService(t, { environment, logLevel: 'info' })
  const appId = await addApp(service.db, { client_id: 'client' })
  const connection = await addConnection(service.db, appId)
  const token = await issuer.sign()
  const publish = Promise.withResolvers<void>()
  const { respond } = issuer
  issuer.respond = (response) => void publish.promise.then(() => respond(response))
  const inFlight = async () => (await scrape(service)).get('http_requests_in_flight')
  // The share of one address.
  const sockets = Array.from({ length: 15 }, () => {
    const socket = connect({ port: service.port, host: '127.0.0.1' })
    const authorization = `Authorization: Bearer ${token}`
    socket.write(`GET ${connection.orders} HTTP/1.1\r\nHost: x\r\n${authorization}\r\n\r\n`)
    return socket.on('error', () => {})
  })
  await until('all wait for the keys', async () => (await inFlight()) === 15)
  for (const socket of sockets) socket.destroy()
  await until('all have disconnected', async () => (await inFlight()) === 0)
  publish.resolve()
  for (let i = 0; i < 3; i += 1) {
    t.equal((await service.get(connection.orders, { token })).status, 200)
  }
})

t.test('200: a known app is served during a flood of unknown tokens', async (t) => {
  const environment = { DATABASE_POOL_SIZE: '1' }
  const service = await startService(t, { environment, logLevel: 'silent' })
  const known = await addCaller(service.db)
  t.equal(countOf(await statusesOf(service, known), 200), MEASURED)
  const flood = startFlood(t, service, known.connection.portfolio, (n) => `unknown${n}`)
  await until('the flood is rejected', () => (flood.counts.get(401) ?? 0) > CLIENTS / 2)
  t.equal(countOf(await statusesOf(service, known), 200), MEASURED)
  flood.stop()
  const { counts } = flood
  t.equal(counts.get(200), undefined)
})

t.test(
  '200: new callers of another address are served during a flood of one address',
  async (t) => {
    const environment = { DATABASE_POOL_SIZE: '1' }
    const service = await startService(t, { environment, logLevel: 'silent' })
    const callers = await Promise.all(Array.from({ length: MEASURED }, () => addCaller(service.db)))
    const path = String(callers[0]?.connection.portfolio)
    const flood = startFlood(t, service, path, (n) => `unknown${n}`)
    await until('the flood is rejected', () => (flood.counts.get(401) ?? 0) > CLIENTS / 2)
    const statuses: unknown[] = []
    for (const { token, connection } of callers) {
      const options = { port: service.port, host: '127.0.0.1', localAddress: '127.0.0.2' }
      const headers = { authorization: `Bearer ${token}` }
      const request = get({ ...options, path: connection.portfolio, headers, agent: false })
      const [response] = await once(request, 'response')
      statuses.push(response.resume().statusCode)
    }
    flood.stop()
    t.same(statuses, Array(MEASURED).fill(200))
  },
)

t.test('200: an app is served while another one is over its quota', async (t) => {
  const service = await startService(t, {
    environment: {
      DATABASE_POOL_SIZE: '1',
      RATE_LIMIT_PER_MINUTE: String(3 * MEASURED),
    },
    logLevel: 'silent',
  })
  const [other, flooding] = [await addCaller(service.db), await addCaller(service.db)]
  t.equal(countOf(await statusesOf(service, other), 200), MEASURED)
  const flood = startFlood(t, service, flooding.connection.portfolio, () => flooding.token)
  await until('the quota is used up', () => (flood.counts.get(429) ?? 0) > CLIENTS)
  t.equal(countOf(await statusesOf(service, other), 200), MEASURED)
  // The first 100 do not wait.
  await until('more is rejected', () => (flood.counts.get(429) ?? 0) > 100)
  flood.stop()
})

t.test('200: an app is served while 40 rejections wait, more than MAX_REQUESTS', async (t) => {
  const service = await startService(t, { environment: { MAX_REQUESTS: '20' }, logLevel: 'silent' })
  const { token, connection } = await addCaller(service.db)
  const path = connection.orders
  const { rejections } = service.limits
  t.equal((await service.get(path, { token })).status, 200)
  const rejected: Promise<{ status: number }>[] = []
  await until('40 wait', () => {
    for (let n = 0; n < 10; n += 1) {
      rejected.push(service.get(path, { token: `unknown${rejected.length}` }))
    }
    return rejections.waiting >= 40
  })
  t.equal((await service.get(path, { token })).status, 200)
  t.ok(rejections.waiting > 20)
  const statuses = (await Promise.all(rejected)).map(({ status }) => status)
  // 503: more than the share of the address arrived at once.
  t.ok(statuses.every((status) => status === 401 || status === 503))
  t.equal(rejections.waiting, 0)
})

t.test(
  'TRUSTED_PROXIES: the address of an unknown caller is that of X-Forwarded-For',
  async (t) => {
    const headers = { 'x-forwarded-for': '203.0.113.1, 203.0.113.2' }
    for (const [TRUSTED_PROXIES, counted] of [
      ['', '127.0.0.1'],
      ['127.0.0.1', '203.0.113.2'],
      ['127.0.0.0/8, 203.0.113.2', '203.0.113.1'],
      ['10.0.0.1', '127.0.0.1'],
    ] as const) {
      const service = await startService(t, {
        environment: { TRUSTED_PROXIES },
        logLevel: 'silent',
      })
      await service.get('/api/v1/queries/connections/none/assets-transfer', { headers })
      const isCounted = (ip: string) =>
        service.limits.rejections.lastAt(service.limits.tenants.of(ip)) > 0
      const addresses = ['127.0.0.1', '203.0.113.1', '203.0.113.2']
      t.same(addresses.filter(isCounted), [counted])
    }
  },
)

t.test('Rejections beyond those that may wait: the connection is closed', async (t) => {
  const service = await startService(t, { logLevel: 'silent' })
  const { token, connection } = await addCaller(service.db)
  const { rejections } = service.limits
  rejections.shares.add(new Tenant('other'), 2_000)
  const ask = (token: string) => service.get(connection.orders, { token })
  for (let n = 0; n < 100; n += 1) t.equal((await ask(`unknown${n}`)).status, 401)
  const isClosed = () =>
    ask('unknown').then(
      () => false,
      () => true,
    )
  // Several at once, because an address gets 20 rejections a second without waiting.
  const isOneClosed = async () =>
    (await Promise.all(Array.from({ length: 20 }, isClosed))).includes(true)
  await until('a connection is closed', isOneClosed)
  t.equal((await ask(token)).status, 200)
})

t.test('200: an app finds memory while another one does not read its responses', async (t) => {
  const service = await startService(t, { environment: { ANSWER_MEMORY_MB: '64' } })
  const [other, hoarding] = [await addCaller(service.db), await addCaller(service.db)]
  const addRows = ({ connection }: Caller, length: number) => {
    const rows = Array.from({ length }, () => ({ description: '😀'.repeat(10_000) }))
    return addPortfolioTransactions(service.db, connection, ...rows)
  }
  await addRows(hoarding, 250)
  // 7 MB, more than the kernel buffers of a connection: without shares, these rows would not fit.
  await addRows(other, 180)
  const request = [
    `GET ${hoarding.connection.portfolio} HTTP/1.1`,
    'Host: x',
    `Authorization: Bearer ${hoarding.token}`,
    '\r\n',
  ].join('\r\n')
  const { memory } = service.limits
  const isFull = () => memory.used > 0.5 * memory.limit
  await until('most of the memory is in use', async () => {
    // The kernel buffers the first 4 MB of each connection. The app may have 48 MiB, and 32 are needed.
    const socket = connect({ port: service.port, host: '127.0.0.1' })
    t.teardown(() => socket.destroy())
    socket.on('error', () => {})
    socket.pause().write(request)
    await once(socket, 'connect')
    // Until then, responses are on their way to the kernel.
    await sleep(1_000)
    return isFull()
  })
  t.equal(countOf(await statusesOf(service, other), 200), MEASURED)
  t.ok(isFull())
})

t.test('200: large requests of two apps take turns', async (t) => {
  const service = await startService(t, { logLevel: 'silent' })
  const [other, flooding] = [await addCaller(service.db), await addCaller(service.db)]
  const large = ({ token, connection }: Caller) =>
    service.get(`${connection.portfolio}?limit=2000`, { token })
  for (const caller of [other, flooding]) {
    await addPortfolioTransactions(service.db, caller.connection, {})
    t.equal((await large(caller)).status, 200)
  }
  await withSlowStatements(t, service.db, 0.05, async () => {
    let before = 0
    const flood = Array.from({ length: LARGE }, async () => {
      await large(flooding)
      before += 1
    })
    await until('most wait', () => service.database.state().primary.waiting > LARGE / 2)
    const waiting = service.database.state().primary.waiting
    before = 0
    t.equal((await large(other)).status, 200)
    t.ok(before < waiting / 2, `${before} of ${waiting} waiting requests came first`)
    await Promise.all(flood)
  })
})
