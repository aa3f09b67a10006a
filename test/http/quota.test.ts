import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { tokenHash } from '../../src/postgres/tokens.ts'
import { startIssuer } from '../support/issuer.ts'
import { addApp, addCaller, addConnection, addToken } from '../support/rows.ts'
import { type Service, type ServiceResponse, startService } from '../support/service.ts'

const QUOTA = 5

function start(t: Test, environment: Record<string, string> = {}): Promise<Service> {
  return startService(t, { environment: { RATE_LIMIT_PER_MINUTE: String(QUOTA), ...environment } })
}

/** What is left, as an answer's RateLimit field tells. */
function rest(answer: ServiceResponse): number {
  const match = /^"app";r=(\d+);t=(\d+)$/.exec(answer.headers.get('ratelimit') ?? '')
  return match === null ? Number.NaN : Number(match[1])
}

t.test('429: every answer to an app counts, and tells what is left', async (t) => {
  const service = await start(t)
  const { token, connection } = await addCaller(service.db)
  const first = await service.get(connection.orders, { token })
  const headers = { 'if-none-match': String(first.headers.get('etag')) }
  const answers = [
    first,
    await service.get(connection.orders, { token, headers }),
    await service.get(`${connection.orders}?x=1`, { token }),
    await service.get('/api/v1/queries/connections/none/assets-transfer', { token }),
    await service.get(connection.account, { token, method: 'HEAD' }),
  ]
  t.same(
    answers.map(({ status }) => status),
    [200, 304, 400, 404, 200],
  )
  t.same(answers.map(rest), [4, 3, 2, 1, 0])
  for (const { headers } of answers) t.equal(headers.get('ratelimit-policy'), '"app";q=5;w=60')

  for (const path of [connection.portfolio, `${connection.orders}?x=1`]) {
    const refused = await service.get(path, { token })
    t.equal(refused.status, 429)
    t.equal(refused.json().code, 'too_many_requests')
    t.equal(refused.headers.get('ratelimit-policy'), '"app";q=5;w=60')
    t.equal(rest(refused), 0)
    const seconds = Number(refused.headers.get('retry-after'))
    t.ok(seconds >= 1 && seconds <= 60)
    for (const name of ['etag', 'link', 'last-modified']) t.notOk(refused.headers.has(name), name)
  }
})

t.test('all tokens of an app share its quota, and no other app does', async (t) => {
  const service = await start(t)
  const { appId, token, connection } = await addCaller(service.db)
  const second = await addToken(service.db, appId)
  const other = await addCaller(service.db)
  for (let i = 0; i < QUOTA; i += 1) {
    await service.get(connection.orders, { token: i % 2 === 0 ? token : second })
  }
  for (const spent of [token, second, await addToken(service.db, appId)]) {
    t.equal((await service.get(connection.orders, { token: spent })).status, 429)
  }
  const answer = await service.get(other.connection.orders, { token: other.token })
  t.equal(answer.status, 200)
  t.equal(rest(answer), QUOTA - 1)
})

t.test('so do a token of ours and one of an identity provider', async (t) => {
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

t.test('of many requests at once, exactly the quota passes', async (t) => {
  // Over one connection to the database, several are answered, and counted, at the same time.
  const environment = { RATE_LIMIT_PER_MINUTE: '50', DATABASE_POOL_SIZE: '1' }
  const service = await start(t, environment)
  const { token, connection } = await addCaller(service.db)
  const requests = Array.from({ length: 200 }, () => service.get(connection.orders, { token }))
  const answers = await Promise.all(requests)
  const passed = answers.filter(({ status }) => status === 200)
  const each = Array.from({ length: 50 }, (_, left) => left)
  t.same(
    passed.map(rest).sort((a, b) => a - b),
    each,
    'each of them is told another number',
  )
  t.equal(answers.filter(({ status }) => status === 429).length, 150)
})

t.test('a request counts although its client does not wait for the answer', async (t) => {
  const service = await start(t, { RATE_LIMIT_PER_MINUTE: '1000' })
  const { token, connection } = await addCaller(service.db)
  const impatient = 40
  for (let i = 0; i < impatient; i += 1) {
    const socket = connect({ port: service.port, host: '127.0.0.1' })
    socket.on('error', () => {})
    const request = `GET ${connection.portfolio} HTTP/1.0\r\nAuthorization: Bearer ${token}\r\n\r\n`
    socket.write(request, () => socket.destroy())
    await once(socket, 'close')
  }
  // They are counted a moment after they are gone; each look counts as well.
  for (let looks = 1; ; looks += 1) {
    const used = 1_000 - rest(await service.get(connection.orders, { token })) - looks
    if (used === impatient || looks === 200) {
      t.equal(used, impatient)
      return
    }
    await sleep(10)
  }
})

t.test('401: a stranger uses up no quota, and is not told of any', async (t) => {
  const service = await start(t)
  const { token, connection } = await addCaller(service.db)
  for (let i = 0; i < 2 * QUOTA; i += 1) {
    const stranger = await service.get(connection.orders, { token: `unknown${i}` })
    t.equal(stranger.status, 401)
    t.notOk(stranger.headers.has('ratelimit'))
  }
  t.equal(rest(await service.get(connection.orders, { token })), QUOTA - 1)
})

t.test('401: comes before 429, once a token is revoked', async (t) => {
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
  t.equal((await service.get(connection.orders, { token: other })).status, 429)
})

t.test('the quota is renewed a minute after the first request', async (t) => {
  const service = await start(t)
  const { token, connection } = await addCaller(service.db)
  for (let i = 0; i < QUOTA; i += 1) await service.get(connection.orders, { token })
  t.equal((await service.get(connection.orders, { token })).status, 429)
  const { now } = Date
  t.teardown(() => {
    Date.now = now
  })
  Date.now = () => now() + 61_000
  const renewed = await service.get(connection.orders, { token })
  t.equal(renewed.status, 200)
  t.equal(rest(renewed), QUOTA - 1)
})

t.test('without a limit, nothing is counted or told', async (t) => {
  const service = await startService(t)
  const { token, connection } = await addCaller(service.db)
  const answer = await service.get(connection.orders, { token })
  t.notOk(answer.headers.has('ratelimit'))
  t.notOk(answer.headers.has('ratelimit-policy'))
})
