import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:tls'
import t, { type Test } from 'tap'
import { scrape } from '../support/metrics.ts'
import { addCaller } from '../support/rows.ts'
import { makeCertificate } from '../support/servers/certificate.ts'
import { startRedis } from '../support/servers/redis.ts'
import { type Service, type ServiceResponse, startService } from '../support/service.ts'
import { until } from '../support/until.ts'
import { withLengths } from '../support/with-lengths.ts'

/** Starts two instances with one database and one Redis. */
async function start(t: Test, quota: number) {
  const redis = await startRedis(t)
  const environment = {
    RATE_LIMIT_PER_MINUTE: String(quota),
    REDIS_URL: redis.url,
    METRICS_PORT: '0',
  }
  const one = await startService(t, { environment })
  const two = await startService(t, { environment, databaseUrl: one.databaseUrl })
  const { token, connection } = await addCaller(one.db)
  const ask = (service: Service) => service.get(connection.orders, { token })
  return { redis, one, two, ask }
}

const warnings = (service: Service) =>
  service.log.filter((line) => line.includes('requests are not counted'))

/** Causes in the log of requests that are not counted. */
const causes = (service: Service) => warnings(service).map((line) => JSON.parse(line).err.message)

t.test('429: two instances share one exact quota', async (t) => {
  const { one, two, ask } = await start(t, 60)
  const statuses: number[] = []
  // On a busy machine, all requests together may exceed the timeout for Redis.
  for (let i = 0; i < 15; i += 1) {
    const responses = await Promise.all(
      Array.from({ length: 10 }, (_, j) => ask(j % 2 === 0 ? one : two)),
    )
    statuses.push(...responses.map(({ status }) => status))
  }
  t.equal(statuses.filter((status) => status === 200).length, 60)
  t.equal(statuses.filter((status) => status === 429).length, 90)
  t.same(warnings(one), [])
})

t.test('200: the window in Redis has ended', async (t) => {
  const { redis, one, ask } = await start(t, 2)
  for (const status of [200, 200]) t.equal((await ask(one)).status, status)
  const [key] = await redis.client.keys('*')
  t.match(key, /^investment-data-query-service:quota:/, 'other services may use this Redis')
  t.ok((await redis.client.pttl(String(key))) > 0, 'the key expires')
  // Ends the minute of the window early.
  await redis.client.pexpire(String(key), 100)
  const hasExpired = async () => (await redis.client.exists(String(key))) === 0
  await until('the key has expired', hasExpired)
  const renewed = await ask(one)
  t.equal(renewed.status, 200)
  t.match(renewed.headers.get('ratelimit'), /^"app";r=1;t=/)
})

t.test('200: a wrong value in Redis concerns one app, for one request', async (t) => {
  const { redis, one, ask } = await start(t, 2)
  const other = await addCaller(one.db)
  const askOther = () => one.get(other.connection.orders, { token: other.token })
  await ask(one)
  const [key] = (await redis.client.keys('*')).map(String) as [string]
  const counted = ({ headers }: Pick<ServiceResponse, 'headers'>) => headers.has('ratelimit')
  await redis.client.set(key, 'no number')
  t.notOk(counted(await ask(one)))
  t.match(warnings(one)[0], 'value is not an integer')
  t.ok(counted(await askOther()), 'the quota of another app')
  t.ok(counted(await ask(one)), 'a new window')
  for (const value of ['100', '-100']) {
    for (const seconds of [100_000, undefined]) {
      await redis.client.set(key, value)
      if (seconds) await redis.client.expire(key, seconds)
      t.notOk(counted(await ask(one)), `${value} for ${seconds} seconds`)
      t.ok(counted(await ask(one)), 'a new window')
      t.ok((await redis.client.pttl(key)) <= 60_000)
    }
  }
})

t.test('200: Redis is down; the quota holds again when it is back', async (t) => {
  const { redis, one, two, ask } = await start(t, 3)
  for (const status of [200, 200, 200]) t.equal((await ask(one)).status, status)
  t.equal((await ask(two)).status, 429)

  await redis.stop()
  for (let i = 0; i < 20; i += 1) {
    t.equal((await ask(i % 2 === 0 ? one : two)).status, 200)
  }
  t.equal(warnings(one).length, 1, 'one warning for all requests')
  t.match(causes(one), withLengths(['Redis closed the connection']))

  await redis.start()
  const counted = async () => (await ask(one)).headers.get('ratelimit') !== null
  await until('requests are counted', counted)
  const statuses: number[] = []
  for (let i = 0; i < 5; i += 1) statuses.push((await ask(one)).status)
  t.ok(statuses.includes(429))
})

t.test('200: a renewed password of Redis needs no restart', async (t) => {
  const { redis, one, ask } = await start(t, 1_000)
  await redis.client.config('SET', 'requirepass', 'renewed/1')
  one.config.REDIS_URL = redis.url.replace('//', '//:renewed%2F1@')
  await redis.client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
  const counted = async () => (await ask(one)).headers.get('ratelimit') !== null
  await until('requests are counted', counted)
})

t.test(
  'quota_uncounted_requests_total: requests while Redis is down, and a warning a minute',
  async (t) => {
    const { redis, one, ask } = await start(t, 1_000)
    const began = performance.now()
    const setClock = (ms: number) => void t.capture(performance, 'now', () => began + ms)
    const uncounted = async () => (await scrape(one)).get('quota_uncounted_requests_total')
    setClock(0)
    await ask(one)
    t.equal(await uncounted(), 0)
    await redis.stop()
    for (let n = 0; n < 3; n += 1) await ask(one)
    setClock(59_999)
    await ask(one)
    t.equal(await uncounted(), 4)
    t.equal(warnings(one).length, 1)
    setClock(60_000)
    await ask(one)
    t.equal(warnings(one).length, 2)
  },
)

t.test('200: Redis hangs', async (t) => {
  const { redis, one, ask } = await start(t, 3)
  t.equal((await ask(one)).status, 200)
  redis.freeze()
  t.teardown(redis.resume)
  const responses = await Promise.all(Array.from({ length: 50 }, () => ask(one)))
  t.same([...new Set(responses.map(({ status }) => status))], [200])
  t.notOk(responses.at(-1)?.headers.has('ratelimit'))
  t.match(causes(one), withLengths([/^Socket timeout/]))
})

t.test('200: the password of Redis is wrong; the log has the cause', async (t) => {
  const { redis, two } = await start(t, 3)
  await redis.client.config('SET', 'requirepass', 'another')
  const environment = {
    RATE_LIMIT_PER_MINUTE: '3',
    REDIS_URL: redis.url.replace('//', '//:wrong@'),
  }
  const service = await startService(t, { environment, databaseUrl: two.databaseUrl })
  const { token, connection } = await addCaller(service.db)
  t.equal((await service.get(connection.orders, { token })).status, 200)
  t.match(causes(service), withLengths([/^WRONGPASS/]))
})

t.test(
  '200: Redis has the certificate of an unknown authority; the log says what to set',
  async (t) => {
    const { certificate, key } = await makeCertificate(t)
    const server = createServer({ cert: await readFile(certificate), key: await readFile(key) })
    server.on('tlsClientError', () => {})
    server.listen(0, '127.0.0.1')
    t.teardown(() => server.close())
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const environment = { RATE_LIMIT_PER_MINUTE: '3', REDIS_URL: `rediss://127.0.0.1:${port}` }
    const service = await startService(t, { environment })
    const { token, connection } = await addCaller(service.db)
    t.equal((await service.get(connection.orders, { token })).status, 200)
    t.match(
      causes(service),
      withLengths([/^self-signed certificate: NODE_EXTRA_CA_CERTS must name the file/]),
    )
  },
)

t.test('200: Redis does not exist when the service starts', async (t) => {
  const printed = t.capture(console, 'error')
  const environment = { RATE_LIMIT_PER_MINUTE: '1', REDIS_URL: 'redis://127.0.0.1:9' }
  const service = await startService(t, { environment })
  const { token, connection } = await addCaller(service.db)
  for (let i = 0; i < 3; i += 1) {
    t.equal((await service.get(connection.orders, { token })).status, 200)
  }
  t.match(causes(service), withLengths(['connect ECONNREFUSED 127.0.0.1:9']))
  t.same(printed(), [], 'ioredis prints errors without a listener')
})
