import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import t from 'tap'
import { portfolioLine } from '../support/importing.ts'
import { startServiceUnderLoad } from '../support/load.ts'
import { openTestDatabase } from '../support/new-database.ts'
import { operator } from '../support/operator-process.ts'
import { untilReadyIs } from '../support/processes/service-process.ts'
import { addApp, addConnection } from '../support/rows.ts'
import { startNetwork } from '../support/servers/network.ts'
import { until } from '../support/until.ts'

const { url, db, login } = await openTestDatabase(t)
const network = await startNetwork(t, login)
const { service, during } = await startServiceUnderLoad(t, { db, login: network.url })

const PAUSE_MS = 8_000

// Before the pauses, which leave sessions that are silent: a read waits until such a session counts as dead.
t.test('Connections break in the middle of a response: no client gets a partial one', async (t) => {
  await during(t, async () => {
    network.cutEvery(20)
    await until('connections break', () => network.cuts > 20)
    network.cutEvery(0)
  })
})

t.test('503: the network pauses; later it delivers the delayed data', async (t) => {
  const { unavailable } = await during(t, async () => {
    network.pause()
    await untilReadyIs(service, 503)
    await sleep(PAUSE_MS)
    t.equal(await service.ready(), 503)
    network.resume()
  })
  t.ok(unavailable > 0)
})

t.test('503: the network pauses; later it works for new connections only', async (t) => {
  const fault = async () => {
    network.pause()
    await untilReadyIs(service, 503)
    network.forget()
  }
  // With more clients than connections, each connection waits for data that never arrives.
  await during(t, fault, { clients: 24 })
})

t.test('import whose network is silent: PostgreSQL ends it after a minute', async (t) => {
  const silent = await startNetwork(t, url)
  const { id } = await addConnection(db, await addApp(db))
  const file = join(t.testdir(), 'rows.ndjson')
  await writeFile(file, `${portfolioLine(1)}\n`)
  const importRows = (through: string) =>
    operator(['import', 'portfolio-transactions', '--connection', id, file], {
      env: { DATABASE_URL: through },
    })
  /** True if a transaction of the operator waits for a lock (`Lock`) or for its client (`Client`). */
  const waitsFor = async (type: string) => {
    const { rows } = await sql`select from pg_stat_activity
      where datname = current_database() and application_name = 'investment-data-operator'
        and state <> 'idle' and wait_event_type = ${type}`.execute(db)
    return rows.length > 0
  }
  let importing: ReturnType<typeof importRows> | undefined
  await db.transaction().execute(async (holder) => {
    await sql`select from connection where id = ${id} for update`.execute(holder)
    importing = importRows(silent.url)
    await until('the import waits for the lock', () => waitsFor('Lock'))
    silent.pause()
  })
  await until('the import has the lock', () => waitsFor('Client'))
  const next = await importRows(url)
  t.match(next, { code: 0, stderr: /^Waiting for a lock /m })
  silent.resume()
  t.equal((await importing)?.code, 1)
})
