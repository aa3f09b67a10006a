import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import t from 'tap'
import { createDatabase } from '../../support/database.ts'
import { loginOfService, openAsOwner } from '../../support/logins.ts'
import { until } from '../../support/until.ts'
import { peakMemory, startServiceProcess } from '../support/processes/service-process.ts'
import { besiege, nothingAmiss } from '../support/siege.ts'
import { readSlowly } from '../support/slow-reader.ts'
import { fillPage, fillWorld, learn, questionsOf } from '../support/truth.ts'

/** Clients that take their answers slowly, or not at all. */
const { url } = await createDatabase(t)
const db = openAsOwner(t, url)
const login = await loginOfService(t, db, url)
// Of each caller those questions that ask for little.
const light = questionsOf(await fillWorld(db, 500)).filter(({ path }) => !path.endsWith('=10000'))
const limitMs = 12_000

t.test('200 ask for 10,000 rows at once, and a quarter reads 10 KB/s', async (t) => {
  // Some 6 MB each: those who read slowly leave room for others.
  const page = await fillPage(db, 200)
  // The clients keep this machine so busy that the service looks late.
  const environment = { DATABASE_URL: login, MAX_EVENT_LOOP_DELAY_MS: '0' }
  const service = await startServiceProcess(t, environment)
  const small = await learn(service.url, light)
  const [large] = await learn(service.url, [page])
  if (large === undefined) throw new Error('nothing was learnt')

  const others = besiege(t, { url: service.url, known: small, clients: 8, limitMs })
  await sleep(1_000)
  const slow = Array.from({ length: 50 }, () => readSlowly({ ...page, port: service.port }, 10_000))
  const eager = { url: service.url, known: [large], clients: 150, limitMs: 120_000, pauseMs: 1_000 }
  const crowd = besiege(t, eager)
  await sleep(15_000)
  const crowdCounts = await crowd()
  const counts = await others()
  for (const { leave } of slow) leave()
  const memory = await peakMemory(service)
  nothingAmiss(t, crowdCounts, `, those of all rows; peak ${memory} MB`)
  nothingAmiss(t, counts, ', those of few rows')
  // Not one is refused, but for a new connection that a busy machine does not open in two seconds.
  t.ok(counts.refused <= counts.sent / 100, 'who asks for little is served')
  t.ok(memory < 600, `${memory} MB`)
  t.equal(await service.ready(), 200)
})

t.test('Readers who stall hold no database connection, and are cut off', async (t) => {
  // Some 25 MB, more than the buffers between two sockets hold.
  const page = await fillPage(db, 2_000)
  const environment = { DATABASE_URL: login, CLIENT_STALL_MS: '3000', LOG_LEVEL: 'info' }
  const service = await startServiceProcess(t, environment)
  const known = await learn(service.url, light)
  const stalled = Array.from({ length: 8 }, () => readSlowly({ ...page, port: service.port }, 0))
  await Promise.all(stalled.map(({ begun }) => begun))
  await until('no connection to the database is in use', async () => {
    const { rows } = await sql<{ n: number }>`select count(*)::int as n from pg_stat_activity
      where usename = ${new URL(login).username} and state <> 'idle'`.execute(db)
    return rows[0]?.n === 0
  })
  const end = besiege(t, { url: service.url, known, clients: 4, limitMs, pauseMs: 500 })
  const cutOff = () => service.said().match(/"aborted":true/g)?.length === stalled.length
  await until('each is cut off, and has its line in the log', cutOff)
  const counts = await end()
  nothingAmiss(t, counts)
  t.equal(counts.refused, 0)
  for (const { leave } of stalled) leave()
})
