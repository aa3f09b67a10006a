import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import t, { type Test } from 'tap'
import { tokenHash } from '../../src/postgres/tokens.ts'
import { startIssuer } from '../support/issuer.ts'
import { scrape } from '../support/metrics.ts'
import { addApp, addCaller, addConnection, addToken } from '../support/rows.ts'
import { type Service, type ServiceResponse, startService } from '../support/service.ts'

const QUOTA = 5

function start(t: Test, environment: Record<string, string> = {}): Promise<Service> {
  return startService(t, { environment: { RATE_LIMIT_PER_MINUTE: String(QUOTA), ...environment } })
}

/** Requests left, by the RateLimit header. */
function rest(response: ServiceResponse): number {
  const match = /^"app";r=(\d+);t=(\d+)$/.exec(response.headers.get('ratelimit') ?? '')
  return match === null ? Number.NaN : Number(match[1])
}

t.test('429: every response to an app counts, and has the rest of the quota', async (t) => {
  const service = await start(t)
  const { token, connection } = await addCaller(service.db)
  const first = await service.get(connection.orders, { token })
  const headers = { 'if-none-match': String(first.headers.get('etag')) }
  const responses = [
    first,
    await service.get(connection.orders, { token, headers }),
    await service.get(`${connection.orders}?x=1`, { token }),
    await service.get('/api/v1/queries/connections/none/assets-transfer', { token }),
    await service.get(connection.account, { token, method: 'HEAD' }),
  ]
  t.same(
    responses.map(({ status }) => status),
    [200, 304, 400, 404, 200],
  )
  t.same(responses.map(rest), [4, 3, 2, 1, 0])
  for (const { headers } of responses) t.equal(headers.get('ratelimit-policy'), '"app";q=5;w=60')

  for (const path of [connection.portfolio, `${connection.orders}?x=1`]) {
    const rejected = await service.get(path, { token })
    t.equal(rejected.status, 429)
    t.equal(rejected.json().code, 'too_many_requests')
    t.equal(rejected.headers.get('ratelimit-policy'), '"app";q=5;w=60')
    t.equal(rest(rejected), 0)
    const seconds = Number(rejected.headers.get('retry-after'))
    t.ok(seconds >= 1 && seconds <= 60)
    for (const name of ['etag', 'last-modified']) t.notOk(rejected.headers.has(name), name)
  }
})

t.test('412: counts in the quota', async (t) => {
  const service = await start(t)
  const { token, connection } = await addCaller(service.db)
  const response = await service.get(`${connection.account}?version=1.1`, { token })
  t.equal(response.status, 412)
  t.equal(rest(response), QUOTA - 1)
})

t.test('200: an export of several blocks counts once in the quota', async (t) => {
  const service = await start(t)
  const { token, connection } = await addCaller(service.db)
  await sql`insert into account_transaction
      (connection_id, movement_id, account_id, type, amount, operation_date_day)
    select ${connection.id}, gen_random_uuid(), gen_random_uuid(), 'DEPOSIT', 1, '2025-01-01'
    from generate_series(1, 4001)`.execute(service.db)
  const headers = { accept: 'text/csv' }
  const response = await service.get(connection.account, { token, headers })
  t.equal(response.text.trim().split('\r\n').length, 1 + 4_001)
  t.equal(rest(response), QUOTA - 1)
  t.equal(rest(await service.get(connection.orders, { token })), QUOTA - 2)
})

t.test('429: all tokens of an app share its quota', async (t) => {
  const service = await start(t)
  const { appId, token, connection } = await addCaller(service.db)
  const second = await addToken(service.db, appId)
  const other = await addCaller(service.db)
  for (let i = 0; i < QUOTA; i += 1) {
    await service.get(connection.orders, { token: i % 2 === 0 ? token : second })
  }
  for (const usedUp of [token, second, await addToken(service.db, appId)]) {
    t.equal((await service.get(connection.orders, { token: usedUp })).status, 429)
  }
  const response = await service.get(other.connection.orders, { token: other.token })
  t.equal(response.status, 200)
  t.equal(rest(response), QUOTA - 1)
})

t.test('200: a token of the service and one of an identity provider share the quota', async (t) => {
  const issuer = await startIssuer(t)
  await issuer.addKey('first')
  const service = await start(t, issuer.environment)
  const appId = await addApp(service.db, { client_id: 'client' })
  const connection = await addConnection(service.db, appId)
  const tokens = [await addToken(service.db, appId), await issuer.sign()]
  const rests: number[] = []
  for (const token of [...tokens, ...tokens]) {
    rests.push(rest(await service.get(connection.orders, { token })))
  }
  t.same(rests, [4, 3, 2, 1])
})

t.test('429: exactly the quota passes of many concurrent requests', async (t) => {
  // One database connection serves, and counts, several requests at the same time.
  const environment = {
    RATE_LIMIT_PER_MINUTE: '50',
    DATABASE_POOL_SIZE: '1',
    STATEMENT_TIMEOUT_MS: '60000',
  }
  const service = await start(t, environment)
  const { token, connection } = await addCaller(service.db)
  const requests = Array.from({ length: 200 }, () => service.get(connection.orders, { token }))
  const responses = await Promise.all(requests)
  const passed = responses.filter(({ status }) => status === 200)
  const each = Array.from({ length: 50 }, (_, left) => left)
  t.same(
    passed.map(rest).sort((a, b) => a - b),
    each,
    'each response has another number',
  )
  t.equal(responses.filter(({ status }) => status === 429).length, 150)
})

t.test('RateLimit: a request counts after its client disconnected', async (t) => {
  const service = await start(t, { RATE_LIMIT_PER_MINUTE: '1000' })
  const { token, connection } = await addCaller(service.db)
  const disconnected = 40
  for (let i = 0; i < disconnected; i += 1) {
    const socket = connect({ port: service.port, host: '127.0.0.1' })
    socket.on('error', () => {})
    const request = `GET ${connection.portfolio} HTTP/1.0\r\nAuthorization: Bearer ${token}\r\n\r\n`
    socket.write(request, () => socket.destroy())
    await once(socket, 'close')
  }
  // The service counts them shortly after they disconnect. Each check counts as well.
  for (let checks = 1; ; checks += 1) {
    const used = 1_000 - rest(await service.get(connection.orders, { token })) - checks
    if (used === disconnected || checks === 900) {
      t.equal(used, disconnected)
      return
    }
    await sleep(10)
  }
})

t.test('401: an unknown token uses no quota, and gets no RateLimit header', async (t) => {
  const service = await start(t)
  const { token, connection } = await addCaller(service.db)
  for (let i = 0; i < 2 * QUOTA; i += 1) {
    const unknown = await service.get(connection.orders, { token: `unknown${i}` })
    t.equal(unknown.status, 401)
    t.notOk(unknown.headers.has('ratelimit'))
  }
  t.equal(rest(await service.get(connection.orders, { token })), QUOTA - 1)
})

t.test('401: takes precedence over 429 after the revocation of a token', async (t) => {
  const service = await start(t)
  const { appId, token, connection } = await addCaller(service.db)
  const other = await addToken(service.db, appId)
  for (let i = 0; i <= QUOTA; i += 1) await service.get(connection.orders, { token })
  t.equal((await service.get(connection.orders, { token })).status, 429)
  await service.db
    .updateTable('app_token')
    .set({ revoked_at: new Date() })
    .where('token_hash', '=', tokenHash(token))
    .execute()
  t.equal((await service.get(connection.orders, { token })).status, 401)
  t.equal((await service.get(`${connection.orders}?x=1`, { token })).status, 401)
  t.equal((await service.get(connection.orders, { token: other })).status, 429)
})

t.test('429: after the first one, the service reads no rows', async (t) => {
  const service = await start(t, { METRICS_PORT: '0' })
  const { appId, token, connection } = await addCaller(service.db)
  const count = async () => {
    const series = [...(await scrape(service))].filter(
      ([name]) =>
        name.startsWith('database_read_duration_seconds_count') && !name.includes('"lookup by'),
    )
    return series.reduce((sum, [, value]) => sum + value, 0)
  }
  for (let i = 0; i <= QUOTA; i += 1) await service.get(connection.orders, { token })
  const before = await count()
  t.equal((await service.get(connection.orders, { token })).status, 429)
  t.ok(before > 0)
  t.equal(await count(), before)
  const logged = service.log.filter((line) => line.includes('"status":429'))
  t.equal(logged.length, 2)
  for (const line of logged) t.match(line, appId, 'the log names the app')
})

/** An app with the client id of a token, and requests with it for a connection of the next app. */
async function startMove(t: Test) {
  const issuer = await startIssuer(t)
  await issuer.addKey('first')
  const service = await start(t, issuer.environment)
  const [former, next] = [
    await addApp(service.db, { client_id: 'client' }),
    await addApp(service.db),
  ]
  const connection = await addConnection(service.db, next)
  const token = await issuer.sign()
  const setClientId = (id: string, client_id: string | null) =>
    service.db.updateTable('app').set({ client_id }).where('id', '=', id).execute()
  return {
    ask: () => service.get(connection.orders, { token }),
    /** Moves the client id to the next app. */
    move: async () => {
      await setClientId(former, null)
      await setClientId(next, 'client')
    },
  }
}

t.test('200: a client id whose former app has used up its quota', async (t) => {
  const { ask, move } = await startMove(t)
  for (let i = 0; i < QUOTA; i += 1) t.equal((await ask()).status, 404)
  t.equal((await ask()).status, 429)
  await move()
  t.equal((await ask()).status, 429, 'the last read found the former app')
  const response = await ask()
  t.equal(response.status, 200)
  t.equal(rest(response), QUOTA - 1)
})

t.test('200: a moved client id counts for its new app from the second request on', async (t) => {
  const { ask, move } = await startMove(t)
  for (let i = 1; i < QUOTA; i += 1) t.equal((await ask()).status, 404)
  await move()
  t.equal((await ask()).status, 200, 'the last request of the quota of the former app')
  const second = await ask()
  t.equal(second.status, 200)
  t.equal(rest(second), QUOTA - 1)
})

t.test('200: the quota is renewed a minute after the first request, not before', async (t) => {
  const service = await start(t)
  const { token, connection } = await addCaller(service.db)
  // A whole number: a sum with a fraction may be rounded up to the next second.
  const began = Math.ceil(performance.now())
  const setClock = (ms: number) => void t.capture(performance, 'now', () => began + ms)
  setClock(0)
  for (let i = 0; i < QUOTA; i += 1) await service.get(connection.orders, { token })
  for (const [ms, seconds] of [
    [0, '60'] as const,
    [50_000, '10'] as const,
    [59_999, '1'] as const,
  ]) {
    setClock(ms)
    const early = await service.get(connection.orders, { token })
    t.equal(early.status, 429)
    t.equal(early.headers.get('retry-after'), seconds)
  }
  t.capture(Date, 'now', () => 0)
  const back = await service.get(connection.orders, { token })
  t.equal(back.headers.get('retry-after'), '1', 'a clock that was set back has no effect')
  setClock(60_000)
  const renewed = await service.get(connection.orders, { token })
  t.equal(renewed.status, 200)
  t.equal(rest(renewed), QUOTA - 1)
})

t.test('200: without RATE_LIMIT_PER_MINUTE there is no RateLimit header', async (t) => {
  const service = await startService(t)
  const { token, connection } = await addCaller(service.db)
  const response = await service.get(connection.orders, { token })
  t.notOk(response.headers.has('ratelimit'))
  t.notOk(response.headers.has('ratelimit-policy'))
})
