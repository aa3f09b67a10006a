import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import pg from 'pg'
import t, { type Test } from 'tap'
import { seed } from '../../../seeds/seed.ts'
import { openAsOwner } from '../../support/logins.ts'
import { isProblem } from '../../support/problem.ts'
import {
  addAccountTransactions,
  addCaller,
  addConnection,
  addPortfolioTransactions,
} from '../../support/rows.ts'
import { type Service, startService } from '../../support/service.ts'
import { until } from '../../support/until.ts'
import { demoRequests, tellAll } from '../support/demo-answers.ts'
import { allAnswered, keepAsking } from '../support/load.ts'
import { firstValue, migrateFor, startDebianPostgres } from '../support/servers/debian-postgres.ts'
import { carriesPrepared, startPgBouncer } from '../support/servers/pgbouncer.ts'
import { slowed } from '../support/slow-statements.ts'

const server = await startDebianPostgres(t)
const login = await migrateFor(server.url)
const db = openAsOwner(t, server.url)
const pool = new pg.Pool({ connectionString: server.url, max: 2 })
await seed(pool)
await pool.end()
const SERVER_CONNECTIONS = 3
const bouncer = await startPgBouncer(t, login, SERVER_CONNECTIONS)

/** Through PgBouncer, with prepared statements where it carries them. */
const serve = (t: Test, environment: Record<string, string> = {}) =>
  startService(t, {
    databaseUrl: server.url,
    environment: {
      DATABASE_URL: bouncer.through(login),
      DATABASE_POOLER: 'true',
      DATABASE_PREPARE: String(carriesPrepared),
      ...environment,
    },
  })

t.test('Behind PgBouncer in transaction mode, every answer is what it is without', async (t) => {
  const direct = await startService(t, { databaseUrl: server.url })
  const service = await serve(t)
  const expected = await tellAll(direct)
  t.same(await tellAll(service), expected)
  t.same(new Set(expected.map(({ status }) => status)), new Set([200, 400, 404]))
  isProblem(t, await service.get(String(demoRequests[0]?.path), { token: 'x' }), 'invalid_token')
  t.equal((await service.get('/health/ready')).status, 200)
  t.equal(await firstValue(bouncer.through(login), 'show statement_timeout'), '5s')
  // Whoever forgot that setting pays with time only.
  t.same(await tellAll(await serve(t, { DATABASE_PREPARE: 'true' })), expected)
})

t.test('Apps that share server connections see nothing of each other', async (t) => {
  const service = await serve(t, { DATABASE_POOL_SIZE: '30' })
  const apps = await Promise.all(Array.from({ length: 8 }, (_, n) => appWithRows(n + 1)))
  const stop = keepAsking(t, 24, async (client) => {
    const mine = apps[client % apps.length]
    const other = apps[(client + 1 + Math.floor(Math.random() * 7)) % apps.length]
    if (mine === undefined || other === undefined) throw new Error('no such app')
    const { token } = mine
    const [own, shared, foreign] = await Promise.all([
      service.get(mine.connection.portfolio, { token }),
      service.get(mine.shared.account, { token }),
      service.get(other.connection.portfolio, { token }),
    ])
    if (own.text !== mine.expected.own) return `own: ${own.status} ${own.text.slice(0, 300)}`
    if (shared.text !== mine.expected.shared) return `shared: ${shared.status} ${shared.text}`
    return foreign.status === 404 ? undefined : `foreign: ${foreign.status} ${foreign.text}`
  })
  let most = 0
  const used = `select count(*) from pg_stat_activity where usename = 'investment_service'`
  const deadline = Date.now() + 4_000
  await until('the load has run', async () => {
    most = Math.max(most, Number(await firstValue(server.url, used)))
    return Date.now() > deadline
  })
  allAnswered(t, await stop())
  // The services of other tests have gone, and PgBouncer has not opened more than it may.
  t.equal(most, SERVER_CONNECTIONS)

  // A server connection on which requests have run shows nothing to whoever gets it next.
  for (const column of [
    'app.id',
    'app_token.app_id',
    'connection.id',
    'portfolio_transaction.type',
  ]) {
    const rows = `(select count(${column}) from ${column.split('.')[0]})`
    // Together, so that each gets another server connection.
    const seen = await Promise.all(
      Array.from({ length: SERVER_CONNECTIONS }, () =>
        firstValue(
          bouncer.through(login),
          `select ${rows} || ' on ' || pg_backend_pid() || pg_sleep(0.2)`,
        ),
      ),
    )
    t.equal(new Set(seen).size, SERVER_CONNECTIONS)
    t.ok(
      seen.every((text) => /^0 on /.test(String(text))),
      `${column}: ${seen}`,
    )
  }

  /** An app with a connection of its own, and one whose token all the others have, too. */
  async function appWithRows(count: number) {
    const { appId, token, connection } = await addCaller(db)
    const shared = await addConnection(db, appId, 'shared by all')
    const rows = Array.from({ length: count }, () => ({ description: `of ${appId}` }))
    await addPortfolioTransactions(db, connection, ...rows)
    await addAccountTransactions(db, shared, ...rows)
    const direct = await startService(t, { databaseUrl: server.url })
    const own = (await direct.get(connection.portfolio, { token })).text
    const ofShared = (await direct.get(shared.account, { token })).text
    await direct.close()
    if (own.split(appId).length !== count + 1) throw new Error('not what was written')
    return { token, connection, shared, expected: { own, shared: ofShared } }
  }
})

t.test('A restart of PgBouncer, or of PostgreSQL behind it, is over when it is', async (t) => {
  const service = await serve(t)
  const { token, connection } = await addCaller(db)
  const rows = Array.from({ length: 50 }, () => ({}))
  await addPortfolioTransactions(db, connection, ...rows)
  const { text } = await service.get(connection.portfolio, { token })
  const refused = { count: 0 }
  const stop = keepAsking(t, 6, async () => {
    const answer = await service.get(connection.portfolio, { token })
    if (answer.status !== 503) return answer.text === text ? undefined : answer.text
    refused.count += 1
    return answer.headers.get('retry-after') ? undefined : '503 without Retry-After'
  })
  for (const [name, what] of Object.entries({ PgBouncer: bouncer, PostgreSQL: server })) {
    await what.stop()
    await untilReadySays(service, 503)
    await what.start()
    const ms = await untilReadySays(service, 200)
    t.comment(`${name} is back, the service after ${ms} ms`)
    const before = refused.count
    for (let n = 0; n < 20; n += 1) {
      t.equal((await service.get(connection.portfolio, { token })).text, text)
    }
    t.equal(refused.count, before, 'nobody is refused any more')
  }
  allAnswered(t, await stop())
  t.comment(`refused with 503 while it was gone: ${refused.count}`)
})

t.test('A table is locked: who needs it is refused in time, the others are answered', async (t) => {
  t.equal(await firstValue(bouncer.through(login), 'show lock_timeout'), '1s')
  const service = await serve(t)
  const { token, connection } = await addCaller(db)
  await addPortfolioTransactions(db, connection, {})
  await addAccountTransactions(db, connection, {})
  const { text } = await service.get(connection.account, { token })
  t.equal((await service.get(connection.portfolio, { token })).status, 200)
  await db.transaction().execute(async (holder) => {
    await sql`lock table portfolio_transaction in access exclusive mode`.execute(holder)
    const stop = keepAsking(t, 2, async () => {
      const answer = await service.get(connection.account, { token })
      return answer.text === text ? undefined : `${answer.status} ${answer.text}`
    })
    const refusals = await Promise.all([refusedAgainAndAgain(), refusedAgainAndAgain()])
    t.same(new Set(refusals.flat()), new Set(['503 1']))
    allAnswered(t, await stop())
    const ms = await untilReadySays(service, 503)
    t.ok(ms < 4_000, `not ready after ${ms} ms, although requests are answered`)

    async function refusedAgainAndAgain() {
      const said: string[] = []
      const start = performance.now()
      for (let turn = 0; turn < 3; turn += 1) {
        const { status, headers } = await service.get(connection.portfolio, { token })
        said.push(`${status} ${headers.get('retry-after')}`)
      }
      const ms = Math.round((performance.now() - start) / 3)
      t.ok(ms < 1_800, `a refusal after ${ms} ms`)
      return said
    }
  })
  t.equal((await service.get(connection.portfolio, { token })).status, 200)
})

t.test('Whom PgBouncer turns away is refused, and the service stays ready', async (t) => {
  // Only so much of its log is kept: it begins anew.
  await bouncer.stop()
  await bouncer.start()
  const service = await serve(t)
  const { token, connection } = await addCaller(db)
  await addPortfolioTransactions(db, connection, {})
  await addAccountTransactions(db, connection, {})
  const paths = [connection.portfolio, connection.account]
  const truth = new Map<string, string>()
  for (const path of paths) truth.set(path, (await service.get(path, { token })).text)
  // All of its connections are open before they are counted.
  await slowed(t, db, 0.2, async () => {
    await Promise.all(
      Array.from({ length: 12 }, () => service.get(connection.portfolio, { token })),
    )
  })
  const answered = new Map(paths.map((path) => [path, 0]))
  const refusedMs: number[] = []
  const readiness = new Map<number, number>()
  let lateLooks = 0
  const ask = async (path: string) => {
    const start = performance.now()
    const answer = await service.get(path, { token })
    if (answer.status === 503) {
      refusedMs.push(Math.round(performance.now() - start))
      return answer.headers.get('retry-after') ? undefined : '503 without Retry-After'
    }
    answered.set(path, (answered.get(path) ?? 0) + 1)
    return answer.text === truth.get(path) ? undefined : `${answer.status} ${answer.text}`
  }
  const logins = () => bouncer.said().split('login attempt').length
  const before = logins()
  await slowed(t, db, 3, async () => {
    // Eight for three connections, each of which takes longer than anybody may wait.
    const stop = keepAsking(t, 8, (client) => ask(String(paths[client === 0 ? 1 : 0])))
    await sleep(1_000)
    const end = performance.now() + 12_000
    while (performance.now() < end) {
      const start = performance.now()
      const { status } = await service.get('/health/ready')
      if (performance.now() - start > 800) lateLooks += 1
      readiness.set(status, (readiness.get(status) ?? 0) + 1)
      await sleep(200)
    }
    allAnswered(t, await stop())
  })
  const opened = logins() - before
  const seen = `answered ${[...answered.values()]}, refused ${refusedMs.length}`
  process.stderr.write(
    `${seen} after ${Math.min(...refusedMs)} to ${Math.max(...refusedMs)} ms, ${opened} logins, ` +
      `${lateLooks} late looks, readiness ${JSON.stringify([...readiness])}\n`,
  )
  t.ok(
    [...answered.values()].every((count) => count > 0),
    seen,
  )
  t.ok(refusedMs.length > 0)
  t.ok(Math.max(...refusedMs) < 3_500, 'nobody waits twice')
  t.same([...readiness.keys()], [200])
  // A refusal costs its own connection, a look at the database that was late another.
  t.ok(opened <= refusedMs.length + lateLooks + 2, 'the other connections stay')
  for (let turn = 0; turn < 20; turn += 1) {
    for (const path of paths) t.equal((await service.get(path, { token })).text, truth.get(path))
  }
  t.equal((await service.get('/health/ready')).status, 200)
})

t.test('A PostgreSQL that hangs behind PgBouncer makes the service not ready', async (t) => {
  const service = await serve(t)
  const { token, connection } = await addCaller(db)
  const { text } = await service.get(connection.portfolio, { token })
  const stop = keepAsking(t, 8, async () => {
    const answer = await service.get(connection.portfolio, { token })
    if (answer.status === 503 && answer.headers.get('retry-after')) return undefined
    return answer.text === text ? undefined : `${answer.status} ${answer.text}`
  })
  await untilReadySays(service, 200)
  await server.freeze()
  const hangingMs = await untilReadySays(service, 503).finally(server.resume)
  const backMs = await untilReadySays(service, 200)
  process.stderr.write(`not ready after ${hangingMs} ms, ready again after ${backMs} ms\n`)
  t.ok(hangingMs < 9_000)
  allAnswered(t, await stop())
  t.equal((await service.get(connection.portfolio, { token })).text, text)
})

/** How many ms it takes until readiness has this status. */
async function untilReadySays(service: Service, status: number): Promise<number> {
  const start = performance.now()
  await until(`ready says ${status}`, async () => {
    return (await service.get('/health/ready')).status === status
  })
  return Math.round(performance.now() - start)
}
