import t from 'tap'
import { isNightly } from '../nightly.ts'
import { addChangingRows } from '../support/changing-rows.ts'
import { check, demoRequests, record } from '../support/golden-responses.ts'
import { assertAllAnswered, startLoad } from '../support/load.ts'
import { scrape } from '../support/metrics.ts'
import { randomOf } from '../support/random.ts'
import { addApp, addCaller, addConnection, addresses, addToken } from '../support/rows.ts'
import { IN_USE, type Standby, startServers, untilStandbyIs } from '../support/servers/standbys.ts'
import { startService } from '../support/service.ts'
import { until } from '../support/until.ts'

/** Rows of a connection that all change in one transaction. */
const ROWS = isNightly ? 300 : 50
const EXCLUDED = { down: 'it does not respond', behind: 'it is behind the primary' }

const servers = await startServers(t)
const { primary, standbys, db, untilCaughtUp } = servers
const [one, two] = standbys
await untilCaughtUp()

/** Number of transactions on a standby. PostgreSQL updates it within a second. */
const transactionsOf = async ({ query }: Standby) => {
  await query('select pg_stat_clear_snapshot()')
  return Number(await query(`select xact_commit from pg_stat_database where datname = 'postgres'`))
}

t.test('Standby as DATABASE_URL: the responses are those of the primary', async (t) => {
  const onPrimary = await startService(t, { databaseUrl: primary.url })
  const onStandby = await startService(t, {
    databaseUrl: primary.url,
    environment: { DATABASE_URL: `${servers.login(one)}?target_session_attrs=any` },
  })
  await untilCaughtUp()
  t.equal((await onStandby.get('/health/ready')).status, 200)
  const expected = await record(onPrimary.url, demoRequests)
  t.same(await record(onStandby.url, demoRequests), expected)
  t.same(new Set(expected.map(({ status }) => status)), new Set([200, 400, 404]))
  for (const token of ['wrong', undefined]) {
    const options = token === undefined ? {} : { token }
    t.equal((await onStandby.get(String(demoRequests[0]?.path), options)).status, 401)
  }
})

t.test('200: both standbys serve reads, with the responses of the primary', async (t) => {
  const withoutReplicas = await startService(t, { databaseUrl: primary.url })
  const expected = await record(withoutReplicas.url, demoRequests)
  const service = await servers.serve(t, { METRICS_PORT: '0' })
  for (const standby of standbys) await untilStandbyIs(service, standby, IN_USE)
  let metrics = new Map<string, number>()
  // On a busy machine, a standby may be silent for a second, and is then not used for a while.
  await until('the metrics show that both are in use', async () => {
    t.same(await record(service.url, demoRequests), expected)
    metrics = await scrape(service)
    return standbys.every(
      ({ host }) => metrics.get(`database_replica_used{server="${host}"}`) === 1,
    )
  })
  const read = 'database_read_duration_seconds_count{statement="assets_transfer_order by tokenHash"'
  const durations = [...metrics].filter(([series]) => series.startsWith(read))
  t.ok(durations.length > 0, 'the durations contain those of the standbys')

  const appId = await addApp(db)
  const token = await addToken(db, appId)
  const connections = Array.from({ length: 20 }, (_, n) => `spread ${n}`)
  for (const connection of connections) await addConnection(db, appId, connection)
  await untilCaughtUp()
  const requests = connections.map((connection) => ({ path: addresses(connection).orders, token }))
  const golden = await record(withoutReplicas.url, requests)
  const before = await Promise.all(standbys.map(transactionsOf))
  const newTransactions = async () =>
    (await Promise.all(standbys.map(transactionsOf))).map((n, index) => n - Number(before[index]))
  const random = randomOf('requests')
  const wanted = isNightly ? 200 : 50
  const stop = startLoad(t, { clients: 4 }, () =>
    check(service.url, random.oneOf(golden.slice(0, 20))),
  )
  await until('both standbys serve reads', async () =>
    (await newTransactions()).every((count) => count > wanted),
  )
  assertAllAnswered(t, await stop())
  t.comment(`transactions on the standbys: ${await newTransactions()}`)
})

t.test('200: a standby stops, hangs or comes back, and no request fails', async (t) => {
  const service = await servers.serve(t)
  const callers = [await addCaller(db), await addCaller(db), await addCaller(db)]
  const changing = await Promise.all(callers.map((caller) => addChangingRows(db, caller, ROWS)))
  for (const standby of standbys) await untilStandbyIs(service, standby, IN_USE)
  const stop = startLoad(t, { clients: 6 }, async (client) => {
    const rows = changing[client % 3]
    return rows === undefined ? 'error: no rows' : await rows.check(service.url)
  })
  const stopChanges = changing.map((rows) => rows.keepChanging(t, 100))
  const untilIs = async (event: string, standby: Standby, state: string) => {
    const start = performance.now()
    await untilStandbyIs(service, standby, state)
    t.comment(`${event}, ${state} after ${Math.round(performance.now() - start)} ms`)
  }
  await one.stop()
  await untilIs('stopped', one, EXCLUDED.down)
  await one.start()
  await untilIs('started', one, IN_USE)
  await two.freeze()
  await untilIs('frozen', two, EXCLUDED.down)
  await one.stop()
  await untilIs('stopped', one, EXCLUDED.down)
  await two.resume()
  await untilIs('resumed', two, IN_USE)
  await one.start()
  await untilIs('started', one, IN_USE)
  for (const stopRows of stopChanges) await stopRows()
  for (const line of service.log) if (/"level":[456]/.test(line)) t.comment(line.slice(0, 3000))
  assertAllAnswered(t, await stop())
})

t.test('200: standbys lag and are excluded, and the primary serves the reads', async (t) => {
  const service = await servers.serve(t)
  const rows = await addChangingRows(db, await addCaller(db), ROWS)
  for (const standby of standbys) await untilStandbyIs(service, standby, IN_USE)
  const stop = startLoad(t, { clients: 4 }, () => rows.check(service.url))
  const stopChanges = rows.keepChanging(t, 100)
  for (const standby of standbys) {
    await standby.query('select pg_wal_replay_pause()')
    await untilStandbyIs(service, standby, EXCLUDED.behind)
  }
  const activeReads = () => Promise.all(standbys.map(({ query }) => query(ACTIVE_CONNECTIONS)))
  const isIdle = async () => (await activeReads()).every((count) => count === '0')
  await until('the earlier reads have ended', isIdle)
  t.equal((await service.get('/health/ready')).status, 200)
  for (const standby of standbys) {
    await standby.query('select pg_wal_replay_resume()')
    await untilStandbyIs(service, standby, IN_USE)
  }
  await stopChanges()
  assertAllAnswered(t, await stop())
})

const ACTIVE_CONNECTIONS = `select count(*) from pg_stat_activity
  where usename = 'investment_service' and state = 'active'`

t.test('200: a promoted standby, and the responses are those of the primary', async (t) => {
  const service = await servers.serve(t)
  await untilStandbyIs(service, two, IN_USE)
  await two.query('select pg_promote()')
  const rows = await addChangingRows(db, await addCaller(db), 3)
  for (let turn = 0; turn < 20; turn += 1) {
    await rows.change()
    t.equal(await rows.check(service.url), 'ok')
  }
})
