import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import t from 'tap'
import { addLargePage, addSampleData, recordOk, requestsOf } from '../support/golden-responses.ts'
import { assertAllAnswered, assertNoErrors, readSlowly, startGoldenLoad } from '../support/load.ts'
import { openTestDatabase } from '../support/new-database.ts'
import { peakMemory, startServiceProcess } from '../support/processes/service-process.ts'
import { startService } from '../support/service.ts'
import { until } from '../support/until.ts'
import { within } from '../support/within.ts'

const { db, login, url: databaseUrl } = await openTestDatabase(t)
const smallRequests = requestsOf(await addSampleData(db, 500)).filter(
  ({ path }) => !path.endsWith('=10000'),
)

t.test('200: small requests, while 200 clients read 10,000 rows, 50 of them slowly', async (t) => {
  // About 6 MB, so that the slow clients leave memory for others.
  const page = await addLargePage(db, 200)
  // The clients keep this machine so busy that the event loop of the service is late.
  const environment = { DATABASE_URL: login }
  const { url, port, ...service } = await startServiceProcess(t, environment)
  const small = await recordOk(url, smallRequests)
  const large = await recordOk(url, [page])

  const stopSmall = startGoldenLoad(t, { url, golden: small, clients: 8 })
  await sleep(1_000)
  const slow = Array.from({ length: 50 }, () => readSlowly(port, page, 10_000))
  const options = { url, golden: large, clients: 150, pauseMs: 1_000, limitMs: 120_000 }
  const stopLarge = startGoldenLoad(t, options)
  // stopLarge waits until each client has its first page.
  await sleep(5_000)
  const largeReport = await stopLarge()
  const smallReport = await stopSmall()
  for (const { disconnect } of slow) disconnect()
  const memory = await peakMemory({ url, port, ...service })
  assertNoErrors(t, largeReport, `, large requests; peak memory ${memory} MB`)
  assertNoErrors(t, smallReport, ', small requests')
  const { unavailable, sent } = smallReport
  // A busy machine may fail to open a connection to PostgreSQL within two seconds.
  t.ok(unavailable <= sent / 10, `${unavailable} of ${sent} small requests got 503`)
  t.ok(memory < 600, `${memory} MB`)
  t.equal(await service.ready(), 200)
})

t.test('Stalled clients: they hold no database connection and are disconnected', async (t) => {
  // About 25 MB, more than the buffers between two sockets hold.
  const page = await addLargePage(db, 2_000)
  // One app may take three quarters of it. The pages of all clients must fit.
  const environment = { ANSWER_MEMORY_MB: '1024', DATABASE_URL: login }
  const { url, port, log, server } = await startService(t, { databaseUrl, environment })
  server.timeout = 3_000
  const golden = await recordOk(url, smallRequests)
  const stalled = Array.from({ length: 8 }, () => readSlowly(port, page, 0))
  const begun = Promise.all(stalled.map(({ begun }) => begun))
  await within('each client has the first bytes', begun)
  await until('no connection to PostgreSQL is in use', async () => {
    const { rows } = await sql<{ n: number }>`select count(*)::int as n from pg_stat_activity
      where usename = ${new URL(login).username} and state <> 'idle'`.execute(db)
    return rows[0]?.n === 0
  })
  const stop = startGoldenLoad(t, { url, golden, clients: 4, pauseMs: 500 })
  const aborted = () =>
    log.filter((line) => line.includes('"aborted":true')).length === stalled.length
  await until('the log has the disconnect of each client', aborted)
  assertAllAnswered(t, await stop())
  for (const { disconnect } of stalled) disconnect()
})
