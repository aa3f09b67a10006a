import { randomBytes } from 'node:crypto'
import * as fs from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { sql } from 'kysely'
import { FileMigrationProvider, Migrator } from 'kysely/migration'
import t from 'tap'
import { readConfig } from '../../src/config.ts'
import { importRows } from '../../src/operator/loading/import-rows.ts'
import { clientConfig } from '../../src/postgres/connect.ts'
import { tokenHash } from '../../src/postgres/tokens.ts'
import { databaseOptions } from '../../src/service.ts'
import { addChangingRows } from '../support/changing-rows.ts'
import {
  type CitusNode,
  createCitusDatabase,
  createEmptyCitusDatabase,
  startCitus,
} from '../support/citus.ts'
import { openPool } from '../support/database.ts'
import { record, recordOk, type TestRequest } from '../support/golden-responses.ts'
import { chunksOf, portfolioLine } from '../support/importing.ts'
import { assertAllAnswered, assertNoErrors, startGoldenLoad, startLoad } from '../support/load.ts'
import { loginOfService, openAsOwner } from '../support/logins.ts'
import { operatorHere } from '../support/operator-process.ts'
import { startServiceProcess } from '../support/processes/service-process.ts'
import {
  addAccountTransactions,
  addCaller,
  addConnection,
  addPortfolioTransactions,
  addToken,
  addTransferOrders,
  type TestConnection,
} from '../support/rows.ts'
import { firstValue, onPort } from '../support/servers/debian-postgres.ts'
import { literalsOf, statements, valuesFor } from '../support/statements.ts'
import { databaseUrl } from '../support/template.ts'
import { until } from '../support/until.ts'
import { withLengths } from '../support/with-lengths.ts'

t.setTimeout(360_000)
const citus = await startCitus()
t.teardown(citus.stop)
const name = `test_${randomBytes(6).toString('hex')}`
await createCitusDatabase(citus.url, name)
const db = openAsOwner(t, databaseUrl(citus.url, name))
const login = await loginOfService(t, db, databaseUrl(citus.url, name))
const environment = { DATABASE_URL: login }
const service = await startServiceProcess(t, environment)

// One app with at least four connections on each worker: the tokens are random.
const caller = await addCaller(db)
const connections = [caller.connection]
const smallest = async () =>
  Math.min(...(await Promise.all(citus.workers.map(connectionsOn))).map(({ length }) => length))
while ((await smallest()) < 4) connections.push(await addConnection(db, caller.appId))
const changing = await Promise.all(
  connections.map((connection) => addChangingRows(db, { ...caller, connection }, 20)),
)

t.test('each statement of the service is one task on one shard', async (t) => {
  const options = databaseOptions(readConfig(environment), login)
  const pool = openPool(t, login, clientConfig(options))
  pool.on('connect', (client) => client.query('set plan_cache_mode = auto'))
  const values = { ...valuesFor(caller, caller.connection.token), from: '2025-01-01' }
  for (const statement of statements.values()) {
    const { title, text } = statement
    const client = await pool.connect()
    await client.query(`prepare explained as ${text}`)
    const execute = `execute explained (${literalsOf(statement, values)})`
    const { rows } = await client.query(`explain ${execute}`)
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
    t.match(plan, /Task Count: 1\n/, title)
    t.notMatch(plan, /Seq Scan/, title)
    await client.query('deallocate explained')
    client.release()
  }
  t.ok(statements.size >= 20)
})

t.test('import: the rows of the connection stay on their worker', async (t) => {
  const options = '-c client_min_messages=debug1'
  const pool = openPool(t, databaseUrl(citus.url, name), { max: 1, options })
  // Results of subqueries are copied between the servers: only the rows of the input.
  let copied: string[] = []
  pool.on('connect', (client) =>
    client.on('notice', ({ message = '' }) => {
      if (message.startsWith('generating subplan')) copied.push(message)
    }),
  )
  const { id: connectionId } = await addConnection(db, caller.appId)
  const run = async (text: string) => {
    copied = []
    const sources = [{ name: 'rows', chunks: chunksOf(text) }]
    const { counts } = await importRows(pool, {
      type: 'portfolio-transactions',
      connectionId,
      sources,
    })
    return counts
  }
  const lines = Array.from({ length: 20 }, (_, index) => portfolioLine(index))
  t.match(await run(lines.join('\n')), { inserted: 20 })
  const changes = [portfolioLine(1, '"amount":1'), portfolioLine(2), portfolioLine(20)]
  t.match(await run(changes.join('\n')), { inserted: 1, updated: 1, unchanged: 1 })
  for (const message of copied) t.match(message, / FROM import_row /)
  t.ok(copied.length <= 2)
})

t.test('shard moved in use: all requests get 200 and the newest rows', async (t) => {
  const [from, to] = citus.workers as [CitusNode, CitusNode]
  const [moved] = await connectionsOn(from)
  const index = connections.indexOf(moved as TestConnection)
  const versions = changing[index]
  if (versions === undefined) throw new Error('no connection on the first worker')
  const golden = await recordOk(service.url, requestsOf(connections.toSpliced(index, 1)))
  const stopOthers = startGoldenLoad(t, { url: service.url, golden, clients: 2 })
  const stopChanges = versions.keepChanging(t, 50)
  const stop = startLoad(t, { clients: 3 }, () => versions.check(service.url))
  const begun = versions.begun
  await sql`select citus_move_shard_placement(
    get_shard_id_for_distribution_column('connection', ${moved?.id}::bigint),
    '127.0.0.1', ${from.port}, '127.0.0.1', ${to.port}, 'force_logical')`.execute(db)
  t.ok(versions.begun > begun, 'rows changed during the move')
  t.notOk((await connectionsOn(from)).includes(moved as TestConnection), 'the shard has moved')
  await stopChanges()
  assertAllAnswered(t, await stop())
  assertAllAnswered(t, await stopOthers())
})

t.test('worker stopped: 503 for its connections, 200 for all others', async (t) => {
  const [worker] = citus.workers as [CitusNode]
  const lost = await connectionsOn(worker)
  const others = connections.filter((connection) => !lost.includes(connection))
  const golden = await recordOk(service.url, requestsOf(connections))
  const goldenOf = (some: TestConnection[]) =>
    golden.filter(({ path }) => requestsOf(some).some((request) => request.path === path))
  const loads = [lost, others].map((some) =>
    startGoldenLoad(t, { url: service.url, golden: goldenOf(some), clients: 3 }),
  )
  await worker.stop()
  const statusOf = async ({ orders }: TestConnection) =>
    (await fetch(service.url + orders, { headers: { authorization: `Bearer ${caller.token}` } }))
      .status
  const statuses = (some: TestConnection[]) => Promise.all(some.map(statusOf))
  for (let round = 0; round < 10; round += 1) {
    t.same(new Set(await statuses(lost)), new Set([503]), 'connections of the stopped worker')
    t.same(new Set(await statuses(others)), new Set([200]), 'all other connections')
  }
  t.equal(await service.ready(), 200)
  await worker.start()
  // Each session of the coordinator may report the lost connection once.
  await until('all responses are as before', async () =>
    isDeepStrictEqual(await record(service.url, requestsOf(connections)), golden),
  )
  const [ofLost, ofOthers] = await Promise.all(loads.map((stop) => stop()))
  if (ofLost) assertNoErrors(t, ofLost, ', connections of the worker')
  if (ofOthers) assertAllAnswered(t, ofOthers)
})

t.test(
  'worker stopped: a revoked token gets 401, after a repetition also on this worker',
  async (t) => {
    const [worker] = citus.workers as [CitusNode]
    let token = ''
    // A session of the coordinator may report the lost connection of the test before.
    await until('the worker is reached again', async () => {
      token = await addToken(db, caller.appId).catch(() => '')
      return token !== ''
    })
    const { id } = await db
      .selectFrom('app_token')
      .select('id')
      .where('token_hash', '=', tokenHash(token))
      .executeTakeFirstOrThrow()
    const statuses = async () => {
      const headers = { authorization: `Bearer ${token}` }
      const responses = connections.map(({ orders }) => fetch(service.url + orders, { headers }))
      return new Set((await Promise.all(responses)).map(({ status }) => status))
    }
    const revoke = () =>
      operatorHere(['token', 'revoke', id, '--json'], {
        DATABASE_URL: databaseUrl(citus.url, name),
      })
    await until('the token is valid', async () =>
      isDeepStrictEqual(await statuses(), new Set([200])),
    )
    await worker.stop()
    const server = `127.0.0.1:${worker.port}`
    const first = await revoke()
    t.match(first, { code: 1, stderr: '' })
    t.match(first.json(), withLengths({ failed: [{ server, success: false, reason: /./ }] }))
    for (let round = 0; round < 10; round += 1)
      t.ok((await statuses()).isSubsetOf(new Set([401, 503])), 'only 401 and 503')
    t.match(await revoke(), { code: 1, stdout: new RegExp(server) }, 'the worker is still stopped')
    await worker.start()
    const repeated = await revoke()
    t.match(repeated, { code: 0, stderr: '' })
    t.same(repeated.json(), { id, revokedAt: first.json().revokedAt, failed: [] })
    await until('no connection is lost', async () => !(await statuses()).has(503))
    for (let round = 0; round < 10; round += 1) t.same(await statuses(), new Set([401]))
    const { rows: times } = await sql`select result from run_command_on_placements('app_token',
    ${`select count(*) || ' ' || min(revoked_at) from %s where id = '${id}'`})`.execute(db)
    t.equal(times.length, 3)
    t.same(times, Array(3).fill(times[0]), 'all copies have the same time')
  },
)

t.test('services on the workers, coordinator stopped: 200 for all connections', async (t) => {
  const golden = await recordOk(service.url, requestsOf(connections))
  const services = await Promise.all(
    citus.workers.map(({ port }) =>
      startServiceProcess(t, { ...environment, DATABASE_URL: onPort(login, port) }),
    ),
  )
  for (const { url } of services) t.same(await recordOk(url, requestsOf(connections)), golden)
  const loads = services.map(({ url }) => startGoldenLoad(t, { url, golden, clients: 3 }))
  await citus.coordinator.stop()
  for (const { url, ready } of services) {
    t.same(await recordOk(url, requestsOf(connections)), golden)
    t.equal(await ready(), 200)
  }
  await until('the service on the coordinator is not ready', async () => {
    return (await service.ready()) === 503
  })
  const started = await startServiceProcess(t, {
    ...environment,
    DATABASE_URL: onPort(login, Number(citus.workers[0]?.port)),
  })
  t.equal(await started.ready(), 200, 'also a new instance')
  await citus.coordinator.start()
  await until('the service on the coordinator is ready', async () => {
    return (await service.ready()) === 200
  })
  for (const stop of loads) assertAllAnswered(t, await stop())
})

t.test('later migration: it changes a distributed table, and each node has its name', async (t) => {
  const url = databaseUrl(citus.url, name)
  const options = { DATABASE_URL: url }
  t.match(await operatorHere(['migrate'], options), { code: 0, stdout: /is up to date/ })
  await db.transaction().execute(async (transaction) => {
    await sql`lock table kysely_migration in share row exclusive mode`.execute(transaction)
    await sql`alter table portfolio_transaction add column later int`.execute(transaction)
    await sql`insert into kysely_migration values ('9999-later', 'now')`.execute(transaction)
  })
  const applied = `select count(*)::int from kysely_migration where name = '9999-later'`
  for (const { port } of [citus.coordinator, ...citus.workers])
    t.equal(await firstValue(onPort(url, port), applied), 1)
})

t.test('cluster of release 1.0.0 with rows: migrate upgrades it', async (t) => {
  const released = `released_${randomBytes(6).toString('hex')}`
  await createEmptyCitusDatabase(citus.url, released)
  const url = databaseUrl(citus.url, released)
  const owner = openAsOwner(t, url)
  const migrationFolder = resolve('migrations')
  const provider = new FileMigrationProvider({ fs, path: { join }, migrationFolder })
  const { error } = await new Migrator({ db: owner, provider }).migrateTo('0004-service-role')
  if (error) throw error
  const script = await fs.readFile('test/support/released/1.0.0-citus.sql', 'utf8')
  await owner.transaction().execute((transaction) => sql.raw(script).execute(transaction))
  const { connection } = await addCaller(owner)
  await addPortfolioTransactions(owner, connection, { amount: '1.50' }, {})
  await addAccountTransactions(owner, connection, {})
  await addTransferOrders(owner, connection, {})

  const { code, stderr } = await operatorHere(['migrate'], { DATABASE_URL: url })
  t.equal(code, 0, stderr)
  await addPortfolioTransactions(owner, connection, {})
  const verified = await operatorHere(['verify'], { DATABASE_URL: url })
  t.match(verified, { code: 0, stdout: /agree with 4 rows/ }, verified.stdout)
})

function requestsOf(some: TestConnection[]): TestRequest[] {
  return some.flatMap(({ portfolio, account, orders }) =>
    [portfolio, `${portfolio}?from=2020-01-05&limit=7`, account, `${account}?page=1&limit=7`]
      .concat(orders)
      .map((path) => ({ path, token: caller.token })),
  )
}

/** Returns the connections whose rows are on the worker. Only the coordinator responds. */
async function connectionsOn({ port }: CitusNode): Promise<TestConnection[]> {
  const shard = sql`get_shard_id_for_distribution_column('connection', id)`
  const ids = connections.map(({ id }) => id)
  const { rows } = await sql<{ id: string }>`
    select id from unnest(${ids}::bigint[]) id join pg_dist_shard_placement on shardid = ${shard}
    where nodeport = ${port}`.execute(db)
  return connections.filter(({ id }) => rows.some((row) => row.id === id))
}
