import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import t from 'tap'
import { withLockedTable, withSlowStatements } from '../support/blocked-statements.ts'
import { send, sendAndRead } from '../support/golden-responses.ts'
import { type ServiceUnderLoad, startServiceUnderLoad } from '../support/load.ts'
import { openTestDatabase } from '../support/new-database.ts'

/** A database that responds, but not each statement. */
const { db, login } = await openTestDatabase(t)

/** Status of the first golden request whose path has this part. */
async function statusOf({ service, golden }: ServiceUnderLoad, part: string): Promise<number> {
  const request = golden.find(({ path }) => path.includes(part))
  if (request === undefined) throw new Error(`no request for ${part}`)
  const { status } = await sendAndRead(service.url, request)
  return status
}

t.test('503: a table is locked; requests for other tables get 200, and it is ready', async (t) => {
  const loaded = await startServiceUnderLoad(t, { db, login })
  const others: number[] = []
  const readiness = new Set<number>()
  const { unavailable } = await loaded.during(t, () =>
    withLockedTable(db, 'portfolio_transaction', async () => {
      for (let turn = 0; turn < 5; turn += 1) {
        others.push(
          await statusOf(loaded, '/accounts/'),
          await statusOf(loaded, '/assets-transfer'),
        )
        readiness.add(await loaded.service.ready())
        await sleep(500)
      }
      t.equal(await statusOf(loaded, '/portfolios/'), 503)
    }),
  )
  t.same(new Set(others), new Set([200]))
  t.same([...readiness], [200])
  t.ok(unavailable > 0)
})

t.test('503: the table of the tokens is locked', async (t) => {
  const loaded = await startServiceUnderLoad(t, { db, login })
  const { unavailable } = await loaded.during(t, () =>
    withLockedTable(db, 'app_token', async () => {
      await sleep(3_000)
      for (const path of ['/portfolios/', '/accounts/', '/assets-transfer']) {
        t.equal(await statusOf(loaded, path), 503)
      }
    }),
  )
  t.ok(unavailable > 0)
})

t.test('503: a column is missing; requests for other tables get 200', async (t) => {
  const loaded = await startServiceUnderLoad(t, { db, login })
  const rename = (from: string, to: string) =>
    sql`alter table portfolio_transaction rename ${sql.id(from)} to ${sql.id(to)}`.execute(db)
  const { unavailable } = await loaded.during(t, async () => {
    await rename('description', 'renamed_description')
    await sleep(2_000)
    t.equal(await statusOf(loaded, '/portfolios/'), 503)
    t.equal(await statusOf(loaded, '/accounts/'), 200)
    t.equal(await loaded.service.ready(), 200)
    await rename('renamed_description', 'description')
  })
  t.ok(unavailable > 0)
})

t.test('503: statements exceed STATEMENT_TIMEOUT_MS; other requests get 200', async (t) => {
  const environment = { STATEMENT_TIMEOUT_MS: '1000' }
  const loaded = await startServiceUnderLoad(t, { db, login, environment })
  // Twice STATEMENT_TIMEOUT_MS, a second of grace, and ten for a busy machine: half of the time of a statement.
  const limitMs = 2 * 1_000 + 1_000 + 10_000
  const { unavailable } = await loaded.during(
    t,
    () =>
      withSlowStatements(t, db, 20, async () => {
        await sleep(4_000)
        t.equal(await statusOf(loaded, '/portfolios/'), 503)
        t.equal(await statusOf(loaded, '/assets-transfer'), 200)
      }),
    { limitMs },
  )
  t.ok(unavailable > 0)
})

t.test('503: all connections are in use; the service stays ready', async (t) => {
  const environment = { DATABASE_POOL_SIZE: '2', STATEMENT_TIMEOUT_MS: '1000' }
  const { service, during } = await startServiceUnderLoad(t, { db, login, environment })
  const statuses = new Set<number>()
  let mostWaiting = 0
  const watchReadiness = async () => {
    for (let check = 0; check < 20; check += 1) {
      const response = await send(service.url, { path: '/health/ready' })
      statuses.add(response.status)
      const { waitingRequests = 0 } = (await response.json()) as { waitingRequests?: number }
      mostWaiting = Math.max(mostWaiting, waitingRequests)
      await sleep(200)
    }
  }
  const fault = () => withSlowStatements(t, db, 0.5, watchReadiness)
  const { unavailable } = await during(t, fault, { clients: 24 })
  t.same([...statuses], [200])
  t.ok(mostWaiting > 0, '/health/ready reports waiting requests')
  t.ok(unavailable > 0)
})
