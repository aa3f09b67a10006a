import { setTimeout as sleep } from 'node:timers/promises'
import { type Kysely, sql } from 'kysely'
import t from 'tap'
import type { Tables } from '../../../src/postgres/tables.ts'
import { createDatabase } from '../../support/database.ts'
import { loginOfService, openAsOwner } from '../../support/logins.ts'
import { type Besieged, startBesieged, untilNotReady } from '../support/service-under-siege.ts'
import { slowed } from '../support/slow-statements.ts'

/** A database that is there, and does not get on with what it is asked. */
const { url } = await createDatabase(t)
const db = openAsOwner(t, url)
const login = await loginOfService(t, db, url)
const place = { db, login }

/** Whether some known list of that kind is answered. */
async function answered({ service, known }: Besieged, list: string): Promise<boolean> {
  const { path = '', token } = known.find((one) => one.path.includes(list)) ?? {}
  const headers = { authorization: `Bearer ${token}` }
  return (await fetch(service.url + path, { headers })).status === 200
}

t.test('A table is locked', async (t) => {
  const besieged = await startBesieged(t, place)
  for (const table of ['portfolio_transaction', 'app_token']) {
    const { refused } = await besieged.during(t, () =>
      locked(db, table, async () => {
        await untilNotReady(besieged.service)
        await sleep(3_000)
        t.equal(await besieged.service.ready(), 503)
        t.equal(await answered(besieged, '/portfolios/'), false)
        const others = await answered(besieged, '/accounts/')
        t.equal(others, table !== 'app_token', 'who needs other tables is answered')
      }),
    )
    t.ok(refused > 0)
  }
})

async function locked(db: Kysely<Tables>, table: string, use: () => Promise<void>): Promise<void> {
  await db.transaction().execute(async (holder) => {
    await sql`lock table ${sql.id(table)} in access exclusive mode`.execute(holder)
    await use()
  })
}

t.test('A column that the service reads is not there for a while', async (t) => {
  const besieged = await startBesieged(t, place)
  const rename = (from: string, to: string) =>
    sql`alter table portfolio_transaction rename ${sql.id(from)} to ${sql.id(to)}`.execute(db)
  const { refused } = await besieged.during(t, async () => {
    await rename('description', 'description_of_later')
    await sleep(2_000)
    t.equal(await answered(besieged, '/portfolios/'), false)
    t.equal(await answered(besieged, '/accounts/'), true, 'the others are answered')
    t.equal(await besieged.service.ready(), 200)
    await rename('description_of_later', 'description')
  })
  t.ok(refused > 0)
})

t.test('Statements take longer than they may', async (t) => {
  const environment = { STATEMENT_TIMEOUT_MS: '1000' }
  const besieged = await startBesieged(t, { ...place, environment })
  const limitMs = 5_000 + 1_000 + 1_000 + 1_000
  const { refused } = await besieged.during(
    t,
    () =>
      slowed(t, db, 20, async () => {
        await sleep(4_000)
        t.equal(await answered(besieged, '/portfolios/'), false)
        t.equal(await answered(besieged, '/assets-transfer'), true, 'the others are answered')
      }),
    { limitMs },
  )
  t.ok(refused > 0)
})

t.test('All connections are in use: load is shed, and the service stays ready', async (t) => {
  const environment = { DATABASE_POOL_SIZE: '2', DATABASE_QUEUE: '4' }
  const besieged = await startBesieged(t, { ...place, environment })
  const states = new Set<number>()
  let mostWaiting = 0
  const { refused } = await besieged.during(
    t,
    () =>
      slowed(t, db, 0.5, async () => {
        for (let look = 0; look < 20; look += 1) {
          const answer = await fetch(`${besieged.service.url}/health/ready`)
          states.add(answer.status)
          const { waitingRequests = 0 } = (await answer.json()) as { waitingRequests?: number }
          mostWaiting = Math.max(mostWaiting, waitingRequests)
          await sleep(200)
        }
      }),
    { clients: 24 },
  )
  t.same([...states], [200])
  t.ok(mostWaiting > 0, 'it tells that requests wait')
  t.ok(refused > 0)
})
