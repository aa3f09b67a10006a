import { sql } from 'kysely'
import t from 'tap'
import { tokenHash } from '../../../src/postgres/tokens.ts'
import { isProblem } from '../../support/problem.ts'
import { addCaller, addConnection, addPortfolioTransactions, addToken } from '../../support/rows.ts'
import { startService } from '../../support/service.ts'
import { databaseUrl, onServer } from '../../support/template.ts'
import { until } from '../../support/until.ts'
import { allAnswered, keepAsking } from '../support/load.ts'
import { migrateFor } from '../support/servers/debian-postgres.ts'
import { standbyIs, startServers } from '../support/servers/standbys.ts'
import { versionsOf } from '../support/versions.ts'

const servers = await startServers(t, {
  max_standby_streaming_delay: 0,
  log_line_prefix: '%a ',
})
const { primary, standbys, db, caughtUp } = servers
await caughtUp()

/** Has the standbys stand still while something is done, although the service goes on to use them. */
async function withStandbysBehind(use: () => Promise<void>): Promise<void> {
  await caughtUp()
  for (const { ask } of standbys) {
    await ask('select pg_wal_replay_pause()')
    const paused = async () => (await ask('select pg_get_wal_replay_pause_state()')) === 'paused'
    await until('the standby stands still', paused)
  }
  await use()
  for (const { ask } of standbys) await ask('select pg_wal_replay_resume()')
}

t.test('Whatever a standby has not heard of yet holds at once', async (t) => {
  const service = await servers.serve(t, { REPLICA_MAX_LAG_MS: '600000' })
  const { appId, token, connection } = await addCaller(db)
  const rotated = await addToken(db, appId)
  const expiring = await addToken(db, appId)
  const deleted = await addConnection(db, appId)
  await addPortfolioTransactions(db, connection, {}, {})
  for (const standby of standbys) await standbyIs(service, standby, 'read from')
  const ask = (path: string, as = token, headers = {}) => service.get(path, { token: as, headers })
  await withStandbysBehind(async () => {
    const before = await ask(connection.portfolio)
    t.equal(before.json().totalItems, 2)
    const headers = { 'if-none-match': String(before.headers.get('etag')) }
    t.equal((await ask(connection.portfolio, token, headers)).status, 304)

    await db
      .updateTable('app_token')
      .set({ revoked_at: sql`now()` })
      .where('token_hash', '=', tokenHash(rotated))
      .execute()
    isProblem(t, await ask(connection.portfolio, rotated), 'invalid_token')
    await db
      .updateTable('app_token')
      .set({ expires_at: sql`now()` })
      .where('token_hash', '=', tokenHash(expiring))
      .execute()
    isProblem(t, await ask(connection.portfolio, expiring), 'expired_token')
    const renewed = await addToken(db, appId)
    t.equal((await ask(connection.portfolio, renewed)).text, before.text, 'a new token')
    await db.deleteFrom('connection').where('id', '=', deleted.id).execute()
    isProblem(t, await ask(deleted.orders), 'connection_not_found')
    const added = await addConnection(db, appId)
    t.equal((await ask(added.orders)).text, '[]', 'a new connection')

    await addPortfolioTransactions(db, connection, {})
    const after = await ask(connection.portfolio, token, headers)
    t.equal(after.status, 200)
    t.equal(after.json().totalItems, 3)
    t.equal(after.json().items.length, 3)
    t.not(after.headers.get('etag'), before.headers.get('etag'))
    t.ok(standbys.every(({ host }) => stateOf(service, host)?.fault === undefined))
  })
})

const stateOf = (service: Awaited<ReturnType<typeof servers.serve>>, host: string) =>
  service.database.state().replicas.find(({ name }) => name === host)

t.test('Statements that a standby has to cancel are answered all the same', async (t) => {
  const service = await servers.serve(t)
  const caller = await addCaller(db)
  const versions = await versionsOf(db, caller, 2000)
  for (const standby of standbys) await standbyIs(service, standby, 'read from')
  const get = (path: string) => service.get(path, { token: caller.token })
  const stop = keepAsking(t, 4, () => versions.check(get))
  const cancelled = () => standbys.flatMap(({ said }) => said().match(CANCELLED) ?? []).length
  // Replaying the removal of rows ends statements, and so does that of a lock, even of a short one.
  const change = async () => {
    await versions.next()
    await sql`vacuum portfolio_transaction, account_transaction, connection`.execute(db)
    for (let n = 0; n < 10; n += 1) {
      await db.transaction().execute(async (all) => {
        await sql`lock table portfolio_transaction, account_transaction`.execute(all)
      })
    }
    return cancelled() >= 20
  }
  await until('standbys have cancelled statements', change, 100_000)
  allAnswered(t, await stop())
  t.comment(`statements of the service that were cancelled: ${cancelled()}`)
})

const CANCELLED = /^investment-data-query-service (ERROR|FATAL): .*conflict with recovery/gm

t.test('A standby whose schema is behind is no reason to refuse', async (t) => {
  await sql`create database upgraded`.execute(db)
  t.teardown(() => onServer(primary.url, 'drop database upgraded with (force)'))
  const [login, ...others] = [primary, ...standbys].map((server) =>
    databaseUrl(servers.login(server), 'upgraded'),
  )
  const service = await startService(t, {
    databaseUrl: databaseUrl(primary.url, 'upgraded'),
    environment: {
      DATABASE_URL: String(login),
      DATABASE_REPLICA_URL: others.join(),
      REPLICA_MAX_LAG_MS: '600000',
    },
  })
  for (const standby of standbys) await standbyIs(service, standby, 'read from')
  await withStandbysBehind(async () => {
    await migrateFor(service.databaseUrl)
    const { token, connection } = await addCaller(service.db)
    for (const path of [connection.portfolio, connection.account, connection.orders]) {
      t.equal((await service.get(path, { token })).status, 200)
    }
    t.ok(standbys.every(({ host }) => stateOf(service, host)?.fault === undefined))
  })
  await service.close()
})
