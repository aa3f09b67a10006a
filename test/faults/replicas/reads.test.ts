import t from 'tap'
import { addApp, addCaller, addConnection, addresses, addToken } from '../../support/rows.ts'
import { startService } from '../../support/service.ts'
import { until } from '../../support/until.ts'
import { demoRequests, tellAll } from '../support/demo-answers.ts'
import { allAnswered, keepAsking } from '../support/load.ts'
import { standbyIs, startServers } from '../support/servers/standbys.ts'
import { versionsOf } from '../support/versions.ts'

const LEFT_OUT = { gone: 'it does not answer', behind: 'it is too far behind' }

const servers = await startServers(t)
const { primary, standbys, db, caughtUp } = servers
const [one, two] = standbys
if (one === undefined || two === undefined) throw new Error('two standbys are needed')
await caughtUp()

/** Reads of the service's database that a standby did since the last look. */
const counted = async ({ ask }: typeof one) => {
  await ask('select pg_stat_clear_snapshot()')
  return Number(await ask(`select xact_commit from pg_stat_database where datname = 'postgres'`))
}

t.test(
  'A service that has a hot standby and no primary answers as one on the primary',
  async (t) => {
    const there = await startService(t, { databaseUrl: primary.url })
    const here = await startService(t, {
      databaseUrl: primary.url,
      environment: { DATABASE_URL: servers.login(one) },
    })
    await caughtUp()
    t.equal((await here.get('/health/ready')).status, 200)
    const expected = await tellAll(there)
    t.same(await tellAll(here), expected)
    t.same(new Set(expected.map(({ status }) => status)), new Set([200, 400, 404]))
    for (const token of ['nobody', undefined]) {
      const asking = token === undefined ? {} : { token }
      t.equal((await here.get(String(demoRequests[0]?.path), asking)).status, 401)
    }
  },
)

t.test('Reads are spread over the standbys, and are what the primary would say', async (t) => {
  const alone = await startService(t, { databaseUrl: primary.url })
  const expected = await tellAll(alone)
  const service = await servers.serve(t)
  for (const standby of standbys) await standbyIs(service, standby, 'read from')
  t.same(await tellAll(service), expected)

  const appId = await addApp(db)
  const token = await addToken(db, appId)
  const connections = Array.from({ length: 20 }, (_, n) => `spread ${n}`)
  for (const connection of connections) await addConnection(db, appId, connection)
  await caughtUp()
  const before = await Promise.all(standbys.map(counted))
  const stop = keepAsking(t, 4, async (client) => {
    const { orders } = addresses(connections[Math.floor(Math.random() * 20)] ?? '')
    const { status, text } = await service.get(orders, { token })
    return status === 200 && text === '[]' ? undefined : `${client}: ${status} ${text}`
  })
  // The servers count their transactions with a delay of up to a second.
  await until('both standbys are read from', async () => {
    const now = await Promise.all(standbys.map(counted))
    return now.every((count, index) => count - Number(before[index]) > 200)
  })
  allAnswered(t, await stop())
  const now = await Promise.all(standbys.map(counted))
  t.comment(`reads by standby: ${now.map((count, index) => count - Number(before[index]))}`)
})

t.test('A standby that stops, hangs or comes back costs no request', async (t) => {
  const service = await servers.serve(t, { REPLICA_MAX_LAG_MS: '60000' })
  const callers = [await addCaller(db), await addCaller(db), await addCaller(db)]
  const all = await Promise.all(callers.map((caller) => versionsOf(db, caller, 300)))
  for (const standby of standbys) await standbyIs(service, standby, 'read from')
  const stop = keepAsking(t, 6, (client) => {
    const token = callers[client % 3]?.token ?? ''
    return Promise.resolve(all[client % 3]?.check((path) => service.get(path, { token })))
  })
  const ended = all.map((versions) => versions.keepChanging(t, 100))
  const timed = async (what: string, step: () => Promise<void>) => {
    const start = performance.now()
    await step()
    t.comment(`${what}: ${Math.round(performance.now() - start)} ms`)
  }
  await one.stop()
  await timed('stopped, left out after', () => standbyIs(service, one, LEFT_OUT.gone))
  await one.start()
  await timed('started, taken in after', () => standbyIs(service, one, 'read from'))
  await two.freeze()
  await timed('hung, left out after', () => standbyIs(service, two, LEFT_OUT.gone))
  await one.stop()
  await standbyIs(service, one, LEFT_OUT.gone)
  await two.resume()
  await timed('resumed, taken in after', () => standbyIs(service, two, 'read from'))
  await one.start()
  await standbyIs(service, one, 'read from')
  for (const end of ended) await end()
  for (const line of service.log) if (/"level":[456]/.test(line)) t.comment(line.slice(0, 3000))
  allAnswered(t, await stop())
})

t.test('A standby that lags is left out, and with none left the primary answers', async (t) => {
  const service = await servers.serve(t, { REPLICA_MAX_LAG_MS: '1000' })
  const caller = await addCaller(db)
  const versions = await versionsOf(db, caller, 300)
  const get = (path: string) => service.get(path, { token: caller.token })
  for (const standby of standbys) await standbyIs(service, standby, 'read from')
  const stop = keepAsking(t, 4, () => versions.check(get))
  const end = versions.keepChanging(t, 50)
  for (const standby of standbys) {
    await standby.ask('select pg_wal_replay_pause()')
    await standbyIs(service, standby, LEFT_OUT.behind)
  }
  const atWork = () => Promise.all(standbys.map(({ ask }) => ask(SESSIONS_AT_WORK)))
  const idle = async () => (await atWork()).every((count) => count === '0')
  await until('reads that had begun before are over', idle)
  t.ok(await idle(), 'no others have begun')
  t.equal((await get('/health/ready')).status, 200)
  for (const standby of standbys) {
    await standby.ask('select pg_wal_replay_resume()')
    await standbyIs(service, standby, 'read from')
  }
  await end()
  allAnswered(t, await stop())
  // A primary that has nothing to do is where its standbys are.
  const states = service.database.state().replicas
  t.ok(states.every(({ lagMs }) => lagMs !== undefined && lagMs < 1000))
})

const SESSIONS_AT_WORK = `select count(*) from pg_stat_activity
  where usename = 'investment_service' and state = 'active'`

t.test('A standby that became a primary of its own is not read from', async (t) => {
  const service = await servers.serve(t)
  await standbyIs(service, two, 'read from')
  await two.ask('select pg_promote()')
  await standbyIs(service, two, 'it does not replay the log of another server')
  const caller = await addCaller(db)
  const versions = await versionsOf(db, caller, 3)
  for (let n = 0; n < 20; n += 1) {
    await versions.next()
    t.equal(await versions.check((path) => service.get(path, { token: caller.token })), undefined)
  }
})
