import { sql } from 'kysely'
import t from 'tap'
import { tokenHash } from '../../src/postgres/tokens.ts'
import { isNightly } from '../nightly.ts'
import { addChangingRows } from '../support/changing-rows.ts'
import { assertAllAnswered, startLoad } from '../support/load.ts'
import { isProblem } from '../support/problem.ts'
import { addCaller, addConnection, addPortfolioTransactions, addToken } from '../support/rows.ts'
import { migrate } from '../support/servers/debian-postgres.ts'
import { exclusionOf, IN_USE, startServers, untilStandbyIs } from '../support/servers/standbys.ts'
import { startService } from '../support/service.ts'
import { databaseUrl, dropDatabase } from '../support/template.ts'
import { until } from '../support/until.ts'

const servers = await startServers(t, {
  max_standby_streaming_delay: 0,
  log_line_prefix: '%a ',
})
const { primary, standbys, db, untilCaughtUp } = servers
await untilCaughtUp()

/** Pauses the replay on the standbys while `use` runs. The service still reads from them. */
async function whileReplayIsPaused(use: () => Promise<void>): Promise<void> {
  await untilCaughtUp()
  for (const { query } of standbys) {
    await query('select pg_wal_replay_pause()')
    const isPaused = async () =>
      (await query('select pg_get_wal_replay_pause_state()')) === 'paused'
    await until('the standby has paused', isPaused)
  }
  await use()
  for (const { query } of standbys) await query('select pg_wal_replay_resume()')
}

t.test('Changes before their replay on standbys: they apply to the next request', async (t) => {
  const service = await servers.serve(t)
  const { appId, token, connection } = await addCaller(db)
  const revoked = await addToken(db, appId)
  const expiring = await addToken(db, appId)
  const deleted = await addConnection(db, appId)
  await addPortfolioTransactions(db, connection, {}, {})
  for (const standby of standbys) await untilStandbyIs(service, standby, IN_USE)
  const get = (path: string, as = token, headers = {}) => service.get(path, { token: as, headers })
  const endToken = (column: 'revoked_at' | 'expires_at', token: string) =>
    db
      .updateTable('app_token')
      .set({ [column]: sql`now()` })
      .where('token_hash', '=', tokenHash(token))
      .execute()
  await whileReplayIsPaused(async () => {
    const before = await get(connection.portfolio)
    t.equal(before.json().totalItems, 2)
    const headers = { 'if-none-match': String(before.headers.get('etag')) }
    t.equal((await get(connection.portfolio, token, headers)).status, 304)

    await endToken('revoked_at', revoked)
    isProblem(t, await get(connection.portfolio, revoked), 'invalid_token')
    await endToken('expires_at', expiring)
    isProblem(t, await get(connection.portfolio, expiring), 'expired_token')
    const renewed = await addToken(db, appId)
    t.equal((await get(connection.portfolio, renewed)).text, before.text, 'new token')
    await db.deleteFrom('connection').where('id', '=', deleted.id).execute()
    isProblem(t, await get(deleted.orders), 'connection_not_found')
    const added = await addConnection(db, appId)
    t.equal((await get(added.orders)).text, '[]', 'new connection')

    await addPortfolioTransactions(db, connection, {})
    const after = await get(connection.portfolio, token, headers)
    t.equal(after.status, 200)
    t.equal(after.json().totalItems, 3)
    t.equal(after.json().items.length, 3)
    t.not(after.headers.get('etag'), before.headers.get('etag'))
    for (const standby of standbys) t.equal(exclusionOf(service, standby), undefined)
  })
})

t.test('200: standbys cancel statements, and no request fails', async (t) => {
  const service = await servers.serve(t)
  const rows = await addChangingRows(db, await addCaller(db), 2000)
  for (const standby of standbys) await untilStandbyIs(service, standby, IN_USE)
  const stop = startLoad(t, { clients: 4 }, () => rows.check(service.url))
  const wanted = isNightly ? 20 : 5
  const cancelled = () => standbys.flatMap(({ log }) => log().match(CANCELLED) ?? []).length
  // Replaying a vacuum or a lock cancels statements.
  const causeConflicts = async () => {
    await rows.change()
    await sql`vacuum portfolio_transaction, account_transaction, connection`.execute(db)
    for (let n = 0; n < 10; n += 1) {
      await db.transaction().execute(async (transaction) => {
        await sql`lock table portfolio_transaction, account_transaction`.execute(transaction)
      })
    }
    return cancelled() >= wanted
  }
  await until(`standbys have cancelled ${wanted} statements`, causeConflicts, 100_000)
  assertAllAnswered(t, await stop())
  t.comment(`cancelled statements of the service: ${cancelled()}`)
})

const CANCELLED = /^investment-data-query-service (ERROR|FATAL): .*conflict with recovery/gm

t.test('200: the schema of the standbys is behind', async (t) => {
  await sql`create database upgraded`.execute(db)
  t.teardown(() => dropDatabase(primary.url, 'upgraded'))
  const [login, ...replicas] = [primary, ...standbys].map((server) =>
    databaseUrl(servers.login(server), 'upgraded'),
  )
  const service = await startService(t, {
    databaseUrl: databaseUrl(primary.url, 'upgraded'),
    environment: {
      DATABASE_URL: String(login),
      DATABASE_REPLICA_URL: replicas.join(),
    },
  })
  for (const standby of standbys) await untilStandbyIs(service, standby, IN_USE)
  await whileReplayIsPaused(async () => {
    await migrate(service.databaseUrl)
    const { token, connection } = await addCaller(service.db)
    for (const path of [connection.portfolio, connection.account, connection.orders]) {
      t.equal((await service.get(path, { token })).status, 200)
    }
    for (const standby of standbys) t.equal(exclusionOf(service, standby), undefined)
  })
  await service.close()
})
