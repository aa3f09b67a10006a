import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { sql } from 'kysely'
import t, { type Test } from 'tap'
import { startIssuer } from '../support/issuer.ts'
import { metricsUrl, scrape } from '../support/metrics.ts'
import {
  addApp,
  addCaller,
  addConnection,
  addPortfolioTransactions,
  keySql,
} from '../support/rows.ts'
import { hideNewestMigration } from '../support/schema-behind.ts'
import { type Service, startService } from '../support/service.ts'
import { until } from '../support/until.ts'

const LIST = '/api/v1/queries/connections/:token/portfolios/transactions'
const ON = { METRICS_PORT: '0' }

/** Text of a series in the response to a scrape. */
function series(name: string, labels: Record<string, string>): string {
  return `${name}{${Object.entries(labels).map(([key, value]) => `${key}="${value}"`)}}`
}

async function start(t: Test, environment: Record<string, string> = {}) {
  const service = await startService(t, { environment: { ...ON, ...environment } })
  return { service, ...(await addCaller(service.db)) }
}

/** Scrapes once all requests have ended, which is shortly after the client has read the response. */
async function settled(service: Service): Promise<Map<string, number>> {
  let found = new Map<string, number>()
  await until('no request is in flight', async () => {
    found = await scrape(service)
    return found.get('http_requests_in_flight') === 0
  })
  return found
}

t.test('requests: counted by route, method and status, with rows and bytes', async (t) => {
  const { service, token, connection } = await start(t)
  await addPortfolioTransactions(service.db, connection, {}, {}, {})
  const started = performance.now()
  const ok = await service.get(connection.portfolio, { token })
  const headers = { 'if-none-match': String(ok.headers.get('etag')) }
  await service.get(connection.portfolio, { token, headers })
  await service.get(`${connection.portfolio}?limit=2`, { token })
  await service.get(connection.portfolio, { token, method: 'HEAD' })
  await service.get(connection.portfolio, { token: 'unknown' })
  await service.get(LIST, { token })
  const found = await settled(service)

  const count = (method: string, status: string) =>
    found.get(series('http_requests_total', { route: LIST, method, status }))
  t.equal(count('GET', '200'), 2)
  t.equal(count('GET', '304'), 1)
  t.equal(count('GET', '401'), 1)
  t.equal(count('GET', '404'), 1)
  t.equal(count('HEAD', '200'), 1)
  t.equal(found.get(series('http_response_items_total', { route: LIST })), 3 + 2 + 3)
  const bytes = found.get(series('http_response_bytes_total', { route: LIST })) ?? 0
  t.ok(bytes > ok.text.length && bytes < 20_000, `${bytes} bytes`)

  const duration = (name: string, status: string, le = {}) => {
    const labels = { ...le, route: LIST, method: 'GET', status }
    return found.get(series(`http_request_duration_seconds_${name}`, labels))
  }
  t.equal(duration('count', '2xx'), 2)
  t.equal(duration('count', '4xx'), 2)
  t.equal(duration('bucket', '2xx', { le: '+Inf' }), 2)
  // Rules and dashboards name buckets, and compare releases.
  const limits = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
  // Not those of nodejs_gc_duration_seconds, which is there as soon as the collector of garbage has run.
  const named = /^(http_request|database_read)_duration_seconds_bucket/
  const buckets = [...found.keys()].filter((key) => named.test(key))
  const le = new Set(buckets.map((key) => /le="([^"]+)"/.exec(key)?.[1]))
  t.same([...le], [...limits.map(String), '+Inf'])
  const seconds = (performance.now() - started) / 1_000
  const sum = Number(duration('sum', '2xx'))
  t.ok(sum > 0 && sum < seconds, `${sum} s in requests of ${seconds} s`)
  const notFound = { route: LIST, code: 'connection_not_found' }
  t.equal(found.get(series('http_errors_total', notFound)), 1)
})

t.test('errors: each route has its series before the first one', async (t) => {
  const { service } = await start(t)
  const found = await settled(service)
  t.equal(found.get(series('http_errors_total', { route: LIST, code: 'internal_error' })), 0)
  for (const reason of ['database', 'overload'])
    t.equal(found.get(series('http_unavailable_total', { route: LIST, reason })), 0, reason)
})

t.test('unknown paths, tokens and methods: no label value contains them', async (t) => {
  const { service, token, connection } = await start(t)
  for (let i = 0; i < 3; i += 1) {
    await service.get(`/made/up/${i}`, { token })
    await service.get(`/api/v1/queries/connections/made${i}/assets-transfer`, { token })
    await service.get(connection.orders, { token, method: ['PUT', 'PATCH', 'PROPFIND'][i] ?? '' })
  }
  const found = await settled(service)
  const requests = [...found.keys()].filter((key) => key.startsWith('http_requests_total{'))
  const orders = '/api/v1/queries/connections/:token/assets-transfer'
  t.same(
    requests.sort(),
    [
      { route: orders, method: 'GET', status: '404' },
      { route: 'unknown', method: 'GET', status: '404' },
      { route: 'unknown', method: 'other', status: '405' },
    ].map((labels) => series('http_requests_total', labels)),
  )
  const text = await (await fetch(metricsUrl(service))).text()
  for (const secret of [token, connection.token, 'made']) t.notOk(text.includes(secret))
})

t.test('disconnected client: counted with the status `aborted`', async (t) => {
  // The read waits for the lock for a fifth of it.
  const { service, token, connection } = await start(t, { STATEMENT_TIMEOUT_MS: '300000' })
  await service.db.transaction().execute(async (db) => {
    await sql`lock table portfolio_transaction in access exclusive mode`.execute(db)
    const socket = connect(service.port, '127.0.0.1')
    const lines = [
      `GET ${connection.portfolio} HTTP/1.1`,
      'Host: x',
      `Authorization: Bearer ${token}`,
    ]
    socket.write(`${lines.join('\r\n')}\r\n\r\n`)
    // A health check also uses a connection, for a moment.
    await until('the read waits for the table', async () => {
      const waiting = sql`select from pg_locks where not granted
        and database = (select oid from pg_database where datname = current_database())`
      return (await waiting.execute(db)).rows.length > 0
    })
    const inUse = { server: 'primary', state: 'in_use' }
    const found = await scrape(service)
    // The health check waits for the table, too.
    t.ok(Number(found.get(series('database_connections', inUse))) >= 1)
    t.equal(found.get('http_requests_in_flight'), 1)
    socket.destroy()
    const aborted = { route: LIST, method: 'GET', status: 'aborted' }
    t.equal((await settled(service)).get(series('http_requests_total', aborted)), 1)
  })
})

t.test('database: version, schema and duration of reads', async (t) => {
  const { service, token, connection } = await start(t)
  const started = performance.now()
  await service.get(connection.orders, { token })
  const found = await settled(service)
  const seconds = (performance.now() - started) / 1_000
  t.equal(found.get('database_up'), 1)
  t.ok([...found.keys()].some((key) => /^database_info\{version="\d+\.\d+.*"\}$/.test(key)))
  t.ok([...found.keys()].some((key) => /^schema_info\{newest="\d{4}-.+"\}$/.test(key)))
  t.equal(found.get(series('database_waiting_requests', { server: 'primary' })), 0)
  const read = { statement: 'assets_transfer_order by tokenHash', result: 'success' }
  t.equal(found.get(series('database_read_duration_seconds_count', read)), 1)
  const sum = Number(found.get(series('database_read_duration_seconds_sum', read)))
  t.ok(sum > 0 && sum < seconds, `${sum} s in a read of ${seconds} s`)
  t.ok(found.has('nodejs_eventloop_lag_p99_seconds'))
  t.ok(found.has('process_resident_memory_bytes'))
})

t.test('refreshes: connections of all apps, by the time since their last refresh', async (t) => {
  const { service } = await start(t)
  await addConnection(service.db, await addApp(service.db))
  const ages = ['1 hour', '30 hours', '3 days', '8 days', '9 days']
  for (const age of ages) {
    const { id } = await addConnection(service.db, await addApp(service.db))
    await sql`update connection set refreshed_at = now() - ${age}::interval where id = ${id}`.execute(
      service.db,
    )
  }
  let counts: (number | undefined)[] = []
  // A probe that is late has no result.
  await until('the connections were counted', async () => {
    const found = await scrape(service)
    counts = ['1d', '2d', '7d', 'older', 'never'].map((refreshed) =>
      found.get(series('connections_sampled', { refreshed })),
    )
    return !counts.includes(undefined)
  })
  // The caller of start() has a connection, too.
  t.same(counts, [1, 1, 1, 2, 2])
})

t.test('refreshes: a connection of exactly one, two or seven days counts as older', async (t) => {
  const { db } = await startService(t)
  const { id } = await addConnection(db, await addApp(db))
  const classes = { '1 day': ['1d', '2d'], '2 days': ['2d', '7d'], '7 days': ['7d', 'older'] }
  // In a transaction, now() does not move.
  for (const [age, [younger, exact]] of Object.entries(classes))
    for (const [microseconds, expected] of [
      [1, younger],
      [0, exact],
    ])
      await db.transaction().execute(async (transaction) => {
        await sql`update connection set refreshed_at =
            now() - ${age}::interval + ${microseconds}::integer * interval '1 microsecond'
          where id = ${id}`.execute(transaction)
        const { rows } = await sql`select * from sample_refreshes()`.execute(transaction)
        t.same(rows, [{ refreshed: expected, connections: '1' }], `${age}, ${microseconds} µs`)
      })
})

t.test('INSTANCES: the metric instances_expected has it, and is absent without it', async (t) => {
  const { service } = await start(t, { INSTANCES: '3' })
  t.equal((await scrape(service)).get('instances_expected'), 3)
  const { service: alone } = await start(t)
  t.notOk((await scrape(alone)).has('instances_expected'))
})

t.test('sample of refreshes: 5,000 connections in a row, from a random one on', async (t) => {
  const { db } = await startService(t)
  const appId = await addApp(db)
  await sql`insert into connection (id, app_id, token_hash)
    select ${sql.raw(keySql('hash'))}, ${appId}, hash
    from generate_series(1, 7000) n, sha256(n::text::bytea) hash`.execute(db)
  await sql`update connection set refreshed_at = now()
    where id >= (select id from connection order by id offset 1000 limit 1)`.execute(db)
  const never = new Set<number>()
  for (let n = 0; n < 30; n += 1) {
    const { rows } = await sql<{ refreshed: string; connections: string }>`
      select * from sample_refreshes()`.execute(db)
    const counts = new Map(rows.map((row) => [row.refreshed, Number(row.connections)]))
    const [old = 0, fresh = 0] = [counts.get('never'), counts.get('1d')]
    t.equal(old + fresh, 5_000)
    never.add(old)
  }
  t.ok(never.size > 1, 'the samples differ')
})

t.test(
  'unreachable database: database_up is 0 and the reason of the 503 is `database`',
  async (t) => {
    const { service, token, connection } = await start(t, {
      DATABASE_URL: 'postgres://nobody@127.0.0.1:9/none',
    })
    t.equal((await service.get(connection.portfolio, { token })).status, 503)
    t.equal((await service.get('/health/ready')).status, 503)
    const found = await settled(service)
    t.equal(found.get('database_up'), 0)
    const counted = (route: string, reason: string) =>
      found.get(series('http_unavailable_total', { route, reason }))
    t.equal(counted(LIST, 'database'), 1)
    t.equal(counted(LIST, 'overload'), 0)
    for (const reason of ['database', 'overload']) t.equal(counted('/health/ready', reason), 0)
  },
)

t.test('429 responses and the age of the identity provider keys: counted', async (t) => {
  const issuer = await startIssuer(t)
  await issuer.addKey('first')
  const { service } = await start(t, { ...issuer.environment, RATE_LIMIT_PER_MINUTE: '1' })
  const appId = await addApp(service.db, { client_id: 'client' })
  const connection = await addConnection(service.db, appId)
  t.equal((await scrape(service)).get('identity_provider_keys_age_seconds'), 0, 'no fetch yet')
  for (const status of [200, 429]) {
    const response = await service.get(connection.portfolio, { token: await issuer.sign() })
    t.equal(response.status, status)
  }
  const found = await settled(service)
  const rejected = { route: LIST, code: 'too_many_requests' }
  t.equal(found.get(series('http_errors_total', rejected)), 1)
  t.equal(found.get('identity_provider_failures_total'), 0)
  const { now } = Date
  t.capture(Date, 'now', () => now() + 7_200_000)
  const age = Number((await scrape(service)).get('identity_provider_keys_age_seconds'))
  t.ok(age >= 7_200 && age < 10_000, `${age} s`)
})

t.test('failed fetches of the identity provider keys: counted', async (t) => {
  const issuer = await startIssuer(t)
  await issuer.addKey('first')
  issuer.respond = (response) => response.writeHead(500).end()
  const { service, connection } = await start(t, issuer.environment)
  const response = await service.get(connection.portfolio, { token: await issuer.sign() })
  t.equal(response.status, 503)
  const found = await settled(service)
  t.equal(found.get('identity_provider_failures_total'), 1)
  t.equal((await scrape(service)).get('identity_provider_failures_total'), 1, 'not counted twice')
  const unavailable = { route: LIST, reason: 'identity_provider' }
  t.equal(found.get(series('http_unavailable_total', unavailable)), 1)
})

t.test(
  'METRICS_PORT: serves metrics and health, is closed by default, and must be free',
  async (t) => {
    const { service } = await start(t)
    const health = (name: string) =>
      fetch(metricsUrl(service).replace('/metrics', `/health/${name}`))
    for (const name of ['live', 'ready']) t.equal((await health(name)).status, 200)
    const newest = await hideNewestMigration(service.db)
    await until('not ready', async () => (await health('ready')).status === 503)
    t.match(await (await health('ready')).json(), { code: 'service_unavailable' })
    await newest.restore()
    await until('ready', async () => (await health('ready')).status === 200)
    t.equal((await fetch(metricsUrl(service).replace('/metrics', '/'))).status, 404)
    t.equal((await fetch(metricsUrl(service), { method: 'POST' })).status, 404)
    t.equal((await service.get('/metrics')).status, 404, 'not on the port for clients')

    const quiet = await startService(t)
    t.notOk(quiet.log.some((line) => line.includes('metrics')))

    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    t.teardown(() => taken.close())
    const { port } = taken.address() as AddressInfo
    await t.rejects(startService(t, { environment: { METRICS_PORT: String(port) } }), {
      syscall: 'listen',
      message: new RegExp(`EADDRINUSE.*:${port}$`),
    })
  },
)
