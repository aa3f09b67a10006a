import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { codeBlocks, fillIn } from '../support/documented-commands.ts'
import { addSampleData, recordOk, requestsOf } from '../support/golden-responses.ts'
import { assertNoErrors, startGoldenLoad } from '../support/load.ts'
import { openAsOwner } from '../support/logins.ts'
import { startServiceProcess, untilReadyIs } from '../support/processes/service-process.ts'
import { libpqVariables, runShell } from '../support/processes/shell.ts'
import {
  type DebianPostgres,
  firstValue,
  migrate,
  startDebianPostgres,
  startPrepared,
} from '../support/servers/debian-postgres.ts'
import { until } from '../support/until.ts'

/** Failover by promotion, with the documented commands. */
const [create = '', promote = '', follow = ''] = codeBlocks('Promote a standby')
const one = await startDebianPostgres(t)
const login = await migrate(one.url)
const callers = await addSampleData(openAsOwner(t, one.url), 300)
const password = 'of-the-replication'
const replicationUrl = ({ port }: DebianPostgres) =>
  `postgres://replicator:${password}@127.0.0.1:${port}/`

const two = await startPrepared(t, (DATA) => {
  const values = { 'postgres://replicator@db1/': replicationUrl(one), DATA }
  const input = `${password}\n${password}\n`
  return runShell(t, fillIn(create, values), libpqVariables(one.url), input)
})

/** Waits until a standby has replayed all changes of the primary. */
async function untilReplayed(standby: DebianPostgres, primary: DebianPostgres): Promise<void> {
  const lsn = await firstValue(primary.url, 'select pg_current_wal_lsn()')
  const replayed = `select pg_last_wal_replay_lsn() >= '${lsn}'`
  await until('the standby has all changes', async () => {
    return (await firstValue(standby.url, replayed)) === true
  })
}

t.test('Promotion: the service follows, and the old primary becomes a standby', async (t: Test) => {
  const hosts = `127.0.0.1:${one.port},127.0.0.1:${two.port}`
  const service = await startServiceProcess(t, {
    DATABASE_URL: login.replace(/(?<=@)[^/]+/, hosts),
  })
  await untilReplayed(two, one)
  const golden = await recordOk(service.url, requestsOf(callers))
  const stop = startGoldenLoad(t, { url: service.url, golden, clients: 4 })
  await sleep(300)
  await one.stop()
  const values = { 'postgres://SUPERUSER@db2/postgres': two.url }
  await runShell(t, fillIn(promote, values))
  t.equal(await firstValue(two.url, 'select pg_is_in_recovery()'), false)
  await untilReadyIs(service, 200)
  await sleep(300)
  assertNoErrors(t, await stop())
  t.same(await recordOk(service.url, requestsOf(callers)), golden)

  const again = { OLD_DATA: one.data, 'postgres://replicator@db2/': replicationUrl(two) }
  await runShell(t, fillIn(follow, again))
  await one.start()
  t.equal(await firstValue(one.url, 'select pg_is_in_recovery()'), true)
  await firstValue(two.url, `insert into app (name) values ('after the promotion') returning id`)
  await untilReplayed(one, two)
  const names = `select count(*)::int from app where name = 'after the promotion'`
  t.equal(await firstValue(one.url, names), 1)
})
