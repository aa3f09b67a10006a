import { sql } from 'kysely'
import t from 'tap'
import { checkOf, serverStatement } from '../../src/postgres/readiness.ts'
import { listProbes } from '../../src/queries/probes.ts'
import { lists } from '../../src/routes/lists.ts'
import { createDatabase } from '../support/database.ts'
import { scrape } from '../support/metrics.ts'
import { openTestDatabase } from '../support/new-database.ts'
import { operatorHere } from '../support/operator-process.ts'
import { duringOutage } from '../support/outage.ts'
import { isProblem } from '../support/problem.ts'
import { addCaller } from '../support/rows.ts'
import { hideNewestMigration } from '../support/schema-behind.ts'
import { type ServiceResponse, startService } from '../support/service.ts'
import { until } from '../support/until.ts'

const service = await startService(t)
const { db, get, log } = service

/** Repeats the readiness check until it has this status, as the service caches its result briefly. */
async function becomes(status: number): Promise<ServiceResponse> {
  let response = await get('/health/ready')
  await until(`ready is ${status}`, async () => {
    response = await get('/health/ready')
    return response.status === status
  })
  return response
}

t.test('200: live and ready without a token', async (t) => {
  for (const path of ['/health/live', '/health/ready']) {
    for (const options of [{}, { token: 'x' }]) t.equal((await get(path, options)).status, 200)
  }
})

t.test('outdated schema: ready is 503, live is 200', async (t) => {
  const newest = await hideNewestMigration(db)
  const behind = await becomes(503)
  isProblem(t, behind, 'service_unavailable')
  t.match(behind.headers.get('retry-after'), /^[0-9]+$/)
  t.equal((await get('/health/live')).status, 200)
  await newest.restore()
  t.equal((await becomes(200)).status, 200, 'ready again without a restart')
})

t.test('denied right: ready is 503 and names the cause', async (t) => {
  await sql`revoke usage on schema public from public`.execute(db)
  t.match((await becomes(503)).json(), { detail: /^PostgreSQL denies the service a right/ })
  await sql`grant usage on schema public to public`.execute(db)
  t.equal((await becomes(200)).status, 200)
})

t.test(
  'search_path and row_security of the database: requests and readiness are 200',
  async (t) => {
    const { db, url, login } = await openTestDatabase(t)
    const database = sql.id(new URL(url).pathname.slice(1))
    // '"$user"' is a pattern of PostgreSQL's manual. pg_dump sets row_security to off.
    const settings = {
      search_path: '"$user"',
      row_security: 'off',
      default_transaction_isolation: 'serializable',
    }
    for (const [name, value] of Object.entries(settings))
      await sql`alter database ${database} set ${sql.id(name)} = ${sql.lit(value)}`.execute(db)
    const set = await startService(t, { databaseUrl: url, environment: { DATABASE_URL: login } })
    const { connection, token } = await addCaller(db)
    for (const path of [connection.portfolio, connection.account, connection.orders])
      t.equal((await set.get(path, { token })).status, 200)
    t.equal((await set.get('/health/ready')).status, 200)
    for (const command of [['app', 'list'], ['verify'], ['migrate']])
      t.match(await operatorHere(command, { DATABASE_URL: url }), { code: 0 }, command.join(' '))
  },
)

/** What PostgreSQL can lack of one list, and how it says so. */
const lacking = {
  right: {
    change: sql`revoke select on portfolio_transaction from investment_service`,
    cause: /^permission denied for table portfolio_transaction$/,
    restore: sql`grant select on portfolio_transaction to investment_service`,
  },
  column: {
    change: sql`alter table account_transaction rename description to other`,
    cause: /^column .*description.* account_transaction$/,
    restore: sql`alter table account_transaction rename other to description`,
  },
  'right to the removed rows': {
    change: sql`revoke select on account_transaction_removal from investment_service`,
    cause: /^permission denied for table account_transaction_removal$/,
    restore: sql`grant select on account_transaction_removal to investment_service`,
  },
}

for (const [what, { change, cause, restore }] of Object.entries(lacking)) {
  t.test(
    `one list lacks a ${what}: ready, with a line and a metric that name the cause`,
    async (t) => {
      const databaseUrl = (await createDatabase(t)).url
      const other = await startService(t, { databaseUrl, environment: { METRICS_PORT: '0' } })
      await change.execute(other.db)
      t.equal((await other.get('/health/ready')).status, 200)
      const lines = () => other.log.map((line) => JSON.parse(line))
      const found = lines().find(({ msg }) => msg === 'the list cannot be read')
      t.match(found, { level: 40, list: /-transactions$/, cause })
      const label = found.cause.replaceAll('"', '\\"')
      const metric = `list_unreadable{list="${found.list}",cause="${label}"}`
      t.equal((await scrape(other)).get(metric), 1)
      await restore.execute(other.db)
      await until('the metric ends', async () => !(await scrape(other)).has(metric))
      t.match(
        lines().find(({ msg }) => msg === 'the list can be read again'),
        { list: found.list },
      )
    },
  )
}

t.test('no list can be read: ready is 503, and 200 again after the repair', async (t) => {
  const other = await startService(t)
  await sql`revoke select on connection from investment_service`.execute(other.db)
  const statusOf = async () => (await other.get('/health/ready')).status
  await until('ready is 503', async () => (await statusOf()) === 503)
  t.match((await other.get('/health/ready')).json(), { detail: /refuses to read every list/ })
  await sql`grant select on connection to investment_service`.execute(other.db)
  await until('ready is 200', async () => (await statusOf()) === 200)
})

t.test('ten checks of readiness: each statement of a list runs once', async (t) => {
  const { database } = await startService(t)
  const titles: string[] = []
  const probe: typeof database.probe = (statement, values) => {
    titles.push(statement.title)
    return database.probe(statement, values)
  }
  const observed = { probe, state: () => database.state(), allowsStandby: database.allowsStandby }
  const check = checkOf(observed, listProbes(lists, ['tokenHash']), () => {})
  for (let number = 1; number <= 10; number += 1) {
    t.match(await check(), { readiness: 'ready' })
    // A result is reused for a quarter of a second.
    await until('a check of the server', () => {
      void check()
      return titles.filter((title) => title === serverStatement.title).length > number
    })
  }
  const ofLists = titles.filter((title) => title !== serverStatement.title)
  t.same(ofLists, [...new Set(ofLists)])
  t.equal(ofLists.length, lists.flatMap(({ queries }) => Object.keys(queries.statements)).length)
})

t.test('every table is locked: ready is 200', async (t) => {
  const other = await startService(t)
  t.equal((await other.get('/health/ready')).status, 200)
  await other.db.transaction().execute(async (transaction) => {
    await sql`lock table app_token, connection, portfolio_transaction, account_transaction, assets_transfer_order
      in access exclusive mode`.execute(transaction)
    for (let check = 0; check < 3; check += 1) {
      t.equal((await other.get('/health/ready')).status, 200)
      await until('a later check', async () => other.database.state().primary.waiting === 0)
    }
  })
})

t.test('PostgreSQL responds with an unexpected error: ready is 503', async (t) => {
  await sql`alter table kysely_migration rename to kept`.execute(db)
  await sql`create view kysely_migration as select (1 / 0)::text as name`.execute(db)
  await sql`grant select on kysely_migration to public`.execute(db)
  t.equal((await becomes(503)).status, 503)
  await sql`drop view kysely_migration`.execute(db)
  await sql`alter table kept rename to kysely_migration`.execute(db)
  t.equal((await becomes(200)).status, 200)
})

t.test(
  'each statement exceeds its timeout: ready is 200, since this may be overload',
  async (t) => {
    // The readiness check has the same limit.
    const environment = { STATEMENT_TIMEOUT_MS: '1000' }
    const slow = await startService(t, { environment })
    const { connection, token } = await addCaller(slow.db)
    await sql`create policy slow on app_token as restrictive for select
    using ((select pg_sleep(30)) is not null)`.execute(slow.db)
    const statusOf = async () => (await slow.get(connection.orders, { token })).status
    t.same(await Promise.all(Array.from({ length: 5 }, statusOf)), Array(5).fill(503))
    t.equal((await slow.get('/health/ready')).status, 200)
  },
)

t.test('schema of a later release: ready is 200', async (t) => {
  const future = { name: '9999-of-a-later-release', timestamp: '2099-01-01T00:00:00Z' }
  await db.insertInto('kysely_migration').values(future).execute()
  const ready = await get('/health/ready')
  t.equal(ready.status, 200)
  t.same(ready.json(), { status: 'ready', waitingRequests: 0 })
  await db.deleteFrom('kysely_migration').where('name', '=', future.name).execute()
})

t.test('unreachable database: ready is 503, live is 200', async (t) => {
  const { connection, token } = await addCaller(db)
  await duringOutage(t, service.databaseUrl, async () => {
    for (const response of [await becomes(503), await get(connection.orders, { token })]) {
      isProblem(t, response, 'service_unavailable')
      t.match(response.headers.get('retry-after'), /^[0-9]+$/)
    }
    t.equal((await get('/health/live')).status, 200)
  })
  t.equal((await becomes(200)).status, 200, 'ready again without a restart')
  t.equal((await get(connection.orders, { token })).status, 200)
})

t.test('health checks: not in the access log', async (t) => {
  for (const path of ['/health/live', '/health/ready']) await get(path)
  t.notOk(log.some((line) => line.includes('/health')))
})
