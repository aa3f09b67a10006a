import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import t, { type Test } from 'tap'
import { isNightly } from '../nightly.ts'
import { withLockedTable, withSlowStatements } from '../support/blocked-statements.ts'
import {
  check,
  demoRequests,
  type GoldenResponse,
  record,
  recordOk,
  seedDemo,
  send,
  sendAndRead,
} from '../support/golden-responses.ts'
import { assertAllAnswered, assertNoErrors, startGoldenLoad, startLoad } from '../support/load.ts'
import { openAsOwner } from '../support/logins.ts'
import { isProblem } from '../support/problem.ts'
import { untilReadyIs } from '../support/processes/service-process.ts'
import { randomOf } from '../support/random.ts'
import { addAccountTransactions, addCaller, addPortfolioTransactions } from '../support/rows.ts'
import { firstValue, migrate, startDebianPostgres } from '../support/servers/debian-postgres.ts'
import { startPgBouncer } from '../support/servers/pgbouncer.ts'
import { startService } from '../support/service.ts'
import { until } from '../support/until.ts'

const server = await startDebianPostgres(t)
const login = await migrate(server.url)
const db = openAsOwner(t, server.url)
await seedDemo(server.url)
const SERVER_CONNECTIONS = 3
const bouncer = await startPgBouncer(t, login, SERVER_CONNECTIONS)

/** Starts the service behind PgBouncer. */
const serve = (t: Test, environment: Record<string, string> = {}) =>
  startService(t, {
    databaseUrl: server.url,
    environment: {
      DATABASE_URL: bouncer.through(login),
      DATABASE_POOLER: 'true',
      ...environment,
    },
  })

/** Adds an app whose connection has rows in both lists. */
async function addCallerWithRows(rows = 1) {
  const { token, connection } = await addCaller(db)
  const all = Array.from({ length: rows }, () => ({}))
  await addPortfolioTransactions(db, connection, ...all)
  await addAccountTransactions(db, connection, ...all)
  return {
    portfolio: { path: connection.portfolio, token },
    account: { path: connection.account, token },
  }
}

/** Asserts that the service gives the golden response 20 times. */
async function assertGolden(t: Test, url: string, golden: GoldenResponse): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) t.equal(await check(url, golden), 'ok')
}

t.test('Transaction mode: each response is the same as without PgBouncer', async (t) => {
  const direct = await startService(t, { databaseUrl: server.url })
  const service = await serve(t)
  const expected = await record(direct.url, demoRequests)
  t.same(await record(service.url, demoRequests), expected)
  t.same(new Set(expected.map(({ status }) => status)), new Set([200, 400, 404]))
  isProblem(t, await service.get(String(demoRequests[0]?.path), { token: 'x' }), 'invalid_token')
  t.equal((await service.get('/health/ready')).status, 200)
  t.equal(await firstValue(bouncer.through(login), 'show statement_timeout'), '5s')
})

t.test('search_path and row_security of the database: those of the role count', async (t) => {
  const { pathname } = new URL(server.url)
  const database = sql.id(pathname.slice(1))
  await sql`alter database ${database} set search_path = '"$user"'`.execute(db)
  await sql`alter database ${database} set row_security = off`.execute(db)
  t.teardown(() => sql`alter database ${database} reset all`.execute(db))
  await bouncer.stop()
  await bouncer.start()
  const service = await serve(t)
  const { portfolio } = await addCallerWithRows()
  t.equal((await sendAndRead(service.url, portfolio)).status, 200)
  t.equal((await service.get('/health/ready')).status, 200)
})

t.test('404: connection of another app, while all apps share server connections', async (t) => {
  const service = await serve(t, { DATABASE_POOL_SIZE: '30' })
  const direct = await startService(t, { databaseUrl: server.url })
  const apps = await Promise.all(Array.from({ length: 8 }, (_, n) => addAppWithRows(n + 1)))
  const random = randomOf('other app')
  const stop = startLoad(t, { clients: 24 }, async (client) => {
    const mine = apps[client % apps.length]
    const other = apps[(client + 1 + random.below(7)) % apps.length]
    if (mine === undefined || other === undefined) throw new Error('no such app')
    const foreign = { path: other[0].path, token: mine[0].token }
    const [portfolio, account, { status, text }] = await Promise.all([
      check(service.url, mine[0]),
      check(service.url, mine[1]),
      sendAndRead(service.url, foreign),
    ])
    if (portfolio !== 'ok') return portfolio
    if (account !== 'ok') return account
    return status === 404 ? 'ok' : `error: connection of another app: ${status} ${text}`
  })
  let most = 0
  const used = `select count(*) from pg_stat_activity where usename = 'investment_service'`
  const turns = isNightly ? 40 : 15
  for (let turn = 0; turn < turns; turn += 1) {
    most = Math.max(most, Number(await firstValue(server.url, used)))
    await sleep(100)
  }
  assertAllAnswered(t, await stop())
  t.equal(most, SERVER_CONNECTIONS, 'server connections of PgBouncer')

  // A server connection shows no rows to its next client.
  for (const column of [
    'app.id',
    'app_token.app_id',
    'connection.id',
    'portfolio_transaction.type',
  ]) {
    const rows = `(select count(${column}) from ${column.split('.')[0]})`
    const statement = `select ${rows} || ' on ' || pg_backend_pid() || pg_sleep(0.2)`
    // Concurrent statements run on different server connections.
    const seen = await Promise.all(
      Array.from({ length: SERVER_CONNECTIONS }, () =>
        firstValue(bouncer.through(login), statement),
      ),
    )
    t.equal(new Set(seen).size, SERVER_CONNECTIONS)
    const noRows = seen.every((text) => /^0 on /.test(String(text)))
    t.ok(noRows, `${column}: ${seen}`)
  }

  /** Adds an app whose connection has this number of rows in both lists. */
  async function addAppWithRows(count: number) {
    const { appId, token, connection } = await addCaller(db)
    const rows = Array.from({ length: count }, () => ({ description: `of ${appId}` }))
    await addPortfolioTransactions(db, connection, ...rows)
    await addAccountTransactions(db, connection, ...rows)
    const requests = [connection.portfolio, connection.account].map((path) => ({ path, token }))
    for (const request of requests) {
      const { text } = await sendAndRead(direct.url, request)
      if (text.split(appId).length !== count + 1) throw new Error(`unexpected rows: ${text}`)
    }
    return (await recordOk(direct.url, requests)) as [GoldenResponse, GoldenResponse]
  }
})

t.test('503: PgBouncer or PostgreSQL restarts; afterwards no request fails', async (t) => {
  const service = await serve(t)
  const { portfolio } = await addCallerWithRows(50)
  const [golden] = (await recordOk(service.url, [portfolio])) as [GoldenResponse]
  let unavailable = 0
  const stop = startLoad(t, { clients: 6 }, async () => {
    const result = await check(service.url, golden)
    if (result === 'unavailable') unavailable += 1
    return result
  })
  for (const [name, program] of Object.entries({ PgBouncer: bouncer, PostgreSQL: server })) {
    await program.stop()
    await untilReadyIs(service, 503)
    await program.start()
    const started = performance.now()
    await untilReadyIs(service, 200)
    t.comment(`ready ${Math.round(performance.now() - started)} ms after ${name}`)
    const unavailableBefore = unavailable
    await assertGolden(t, service.url, golden)
    t.equal(unavailable, unavailableBefore, 'no further request gets 503')
  }
  assertNoErrors(t, await stop())
})

t.test('Two PgBouncers in DATABASE_URL: one fails, and the service uses the other', async (t) => {
  const second = await startPgBouncer(t, login, SERVER_CONNECTIONS)
  const hosts = [bouncer, second].map(({ through }) => new URL(through(login)).host).join()
  const service = await serve(t, { DATABASE_URL: login.replace(/(?<=@)[^/]+/, hosts) })
  const { portfolio } = await addCallerWithRows(50)
  const [golden] = (await recordOk(service.url, [portfolio])) as [GoldenResponse]
  for (const [failed, other] of [
    [bouncer, second],
    [second, bouncer],
  ] as const) {
    await failed.stop()
    await until('a request gets 200', async () => (await check(service.url, golden)) === 'ok')
    await untilReadyIs(service, 200)
    await assertGolden(t, service.url, golden)
    await failed.start()
    await until('the log has the login', () => other.log().includes('login attempt'))
  }
})

t.test('503: the table is locked; requests for other tables get 200', async (t) => {
  t.equal(await firstValue(bouncer.through(login), 'show lock_timeout'), '1s')
  const service = await serve(t)
  const { portfolio, account } = await addCallerWithRows()
  const golden = await recordOk(service.url, [account])
  t.equal((await sendAndRead(service.url, portfolio)).status, 200)
  const logBefore = server.log()
  await withLockedTable(db, 'portfolio_transaction', async () => {
    const stop = startGoldenLoad(t, { url: service.url, golden, clients: 2 })
    const sendThree = async () => {
      for (let turn = 0; turn < 3; turn += 1) {
        const { status, headers } = await sendAndRead(service.url, portfolio)
        t.equal(`${status} ${headers.get('retry-after')}`, '503 1')
      }
    }
    await Promise.all([sendThree(), sendThree()])
    assertAllAnswered(t, await stop())
    t.equal((await service.get('/health/ready')).status, 200)
  })
  const log = () => server.log().slice(logBefore.length)
  const ended = 'canceling statement due to lock timeout'
  // A response may arrive before the line of its statement.
  await until('the log has a lock timeout', () => log().includes(ended))
  t.notMatch(log(), 'canceling statement due to statement timeout', 'lock_timeout ends each one')
  t.equal((await sendAndRead(service.url, portfolio)).status, 200)
})

t.test('503: query_wait_timeout; the service stays ready and does not retry', async (t) => {
  // A restart clears its log, of which only the newest part is kept.
  await bouncer.stop()
  await bouncer.start()
  const service = await serve(t)
  const { portfolio, account } = await addCallerWithRows()
  const golden = (await recordOk(service.url, [portfolio, account])) as [
    GoldenResponse,
    GoldenResponse,
  ]
  // Opens all connections before the test counts new ones.
  await withSlowStatements(t, db, 0.2, async () => {
    await Promise.all(Array.from({ length: 12 }, () => sendAndRead(service.url, portfolio)))
  })
  const counts = { portfolio: 0, account: 0 }
  const readiness = new Set<number>()
  let lateChecks = 0
  const logged = (text: string) => bouncer.log().split(text).length - 1
  const loginsBefore = logged('login attempt')
  const timeoutsBefore = logged('closing because: query_wait_timeout')
  const report = await withSlowLoad()
  const logins = logged('login attempt') - loginsBefore
  const timeouts = logged('closing because: query_wait_timeout') - timeoutsBefore
  t.comment(
    `${JSON.stringify(counts)}, 503 after ${Math.round(report.unavailableMs)} ms on average, ` +
      `${logins} logins, ${timeouts} timeouts, ${lateChecks} late checks`,
  )
  t.ok(counts.portfolio > 0)
  t.ok(counts.account > 0)
  t.ok(report.unavailable > 0)
  t.same([...readiness], [200])
  // PgBouncer closes the connection of a request with 503, and the service that of a late check.
  const expected = report.unavailable + lateChecks + 2
  t.ok(timeouts > 0 && timeouts <= expected, `no retry: ${timeouts} timeouts of ${expected}`)
  t.ok(logins <= expected, `the other connections stay open: ${logins} logins of ${expected}`)
  for (const response of golden) await assertGolden(t, service.url, response)
  t.equal((await service.get('/health/ready')).status, 200)

  /** Has eight clients share three server connections. Statements exceed query_wait_timeout. */
  async function withSlowLoad() {
    let stop: ReturnType<typeof startLoad> | undefined
    await withSlowStatements(t, db, 3, async () => {
      stop = startLoad(t, { clients: 8 }, async (client) => {
        const result = await check(service.url, golden[client === 0 ? 1 : 0])
        if (result === 'ok') counts[client === 0 ? 'account' : 'portfolio'] += 1
        return result
      })
      await sleep(1_000)
      for (const end = performance.now() + 12_000; performance.now() < end; await sleep(200)) {
        const start = performance.now()
        const response = await send(service.url, { path: '/health/ready' })
        // A check is late after 900 ms.
        if (performance.now() - start > 800) lateChecks += 1
        readiness.add(response.status)
        await response.arrayBuffer()
      }
      await stop()
    })
    if (stop === undefined) throw new Error('there was no load')
    const report = await stop()
    assertNoErrors(t, report)
    return report
  }
})

t.test('Not ready: PostgreSQL hangs behind PgBouncer; requests get 200 or 503', async (t) => {
  const service = await serve(t)
  const { portfolio } = await addCallerWithRows()
  const golden = (await recordOk(service.url, [portfolio])) as [GoldenResponse]
  const stop = startGoldenLoad(t, { url: service.url, golden, clients: 8 })
  await untilReadyIs(service, 200)
  await server.freeze()
  const frozen = performance.now()
  await untilReadyIs(service, 503).finally(server.resume)
  const resumed = performance.now()
  await untilReadyIs(service, 200)
  const [notReadyMs, readyMs] = [resumed - frozen, performance.now() - resumed].map(Math.round)
  t.comment(`not ready after ${notReadyMs} ms, ready again after ${readyMs} ms`)
  assertNoErrors(t, await stop())
  await assertGolden(t, service.url, golden[0])
})
