import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { isProblem } from '../../support/problem.ts'
import { until } from '../../support/until.ts'
import { startServers } from '../support/servers/standbys.ts'
import { startBesieged, untilNotReady } from '../support/service-under-siege.ts'

/*
 * Standbys have every row, and yet nothing may be answered from them alone: whether a token was revoked
 * or a row was changed since, only the primary knows.
 */

const servers = await startServers(t)
const { primary, standbys, db, caughtUp } = servers
const { service, known, during } = await startBesieged(t, {
  db,
  login: servers.login(primary),
  environment: { DATABASE_REPLICA_URL: standbys.map(servers.login).join() },
})
await caughtUp()

const GONE_MS = 3_000
/** Sessions of the service. */
const SESSIONS = `select count(*)::int from pg_stat_activity where usename = 'investment_service'`
const ROWS = 'select count(*)::int from portfolio_transaction'

/** Has the primary gone or hanging, with the standbys as they were, and looks at every kind of answer. */
async function whileGone(t: Test, leave: () => Promise<void>, back: () => Promise<void>) {
  const [first] = known
  const path = String(first?.path)
  const token = String(first?.token)
  const ask = async (at: string, headers: Record<string, string> = {}) => {
    const answer = await fetch(service.url + at, { headers })
    return { status: answer.status, headers: answer.headers, text: await answer.text() }
  }
  const authorization = `Bearer ${token}`
  const etag = String((await ask(path, { authorization })).headers.get('etag'))
  const answersNobody = async () => {
    await untilNotReady(service)
    for (const standby of standbys) {
      t.equal(await standby.ask('select pg_is_in_recovery()'), true, 'the standby answers')
      t.ok(Number(await standby.ask(ROWS)) >= 9_000, 'and has the rows')
    }
    const answers = await Promise.all([
      ...known.map((one) => ask(one.path, { authorization: `Bearer ${one.token}` })),
      ask(path, { authorization, 'if-none-match': etag }),
      ask(path, { authorization: 'Bearer nobody' }),
      ask(path.replace(/connections\/[^/]+/, 'connections/nobodys'), { authorization }),
      ask('/health/ready'),
    ])
    for (const answer of answers) {
      isProblem(t, answer, 'service_unavailable')
      t.match(answer.headers.get('retry-after'), /^[1-9]\d*$/)
    }
    t.equal((await ask('/health/live')).status, 200)
    await sleep(GONE_MS)
    t.equal(await service.ready(), 503, 'nor does it think better of it')
  }
  const counts = await during(t, async () => {
    for (const standby of standbys) {
      const used = async () => Number(await standby.ask(SESSIONS)) > 0
      await until('the standby is read from', used)
    }
    await leave()
    await answersNobody().finally(back)
  })
  t.ok(counts.refused > 0)
}

t.test('Without the primary, standbys answer nobody: it has stopped', (t) =>
  whileGone(t, primary.stop, primary.start),
)

t.test('Without the primary, standbys answer nobody: it hangs', (t) =>
  whileGone(t, primary.freeze, primary.resume),
)

t.test('A standby that comes back before its primary changes nothing', async (t) => {
  const [one] = standbys
  if (one === undefined) throw new Error('a standby is needed')
  const leave = async () => {
    await one.stop()
    await primary.stop()
    await one.start()
  }
  await whileGone(t, leave, primary.start)
})
