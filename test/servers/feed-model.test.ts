import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { openPool } from '../support/database.ts'
import { openAsOwner } from '../support/logins.ts'
import { followChanges } from '../support/model/changes.ts'
import { openTestDatabase } from '../support/new-database.ts'
import { firstValue, migrate } from '../support/servers/debian-postgres.ts'
import { startPgBouncer } from '../support/servers/pgbouncer.ts'
import { IN_USE, startServers, untilStandbyIs } from '../support/servers/standbys.ts'
import { type Service, startService } from '../support/service.ts'
import { databaseUrl, onServer } from '../support/template.ts'

/** Statements of each of the three writers on each list. */
const ROUNDS = 60

// PostgreSQL 15, with two standbys.
const servers = await startServers(t)
const { primary, standbys, untilCaughtUp } = servers

async function follow(t: Test, url: string, get: Service['get']) {
  const pool = openPool(t, url, { max: 8 })
  await followChanges(t, { get, db: openAsOwner(t, url), pool }, ROUNDS)
}

t.test('PostgreSQL 15: copies equal the lists', async (t) => {
  t.match(await firstValue(primary.url, 'show server_version'), /^15\./)
  const service = await startService(t, { databaseUrl: primary.url })
  await follow(t, primary.url, service.get)
})

t.test('Standbys that lag: no cursor skips a change, and no valid one returns 410', async (t) => {
  const service = await servers.serve(t)
  await untilCaughtUp()
  for (const standby of standbys) await untilStandbyIs(service, standby, IN_USE)
  let following = true
  let pauses = 0
  const lag = async () => {
    for (; following; pauses += 1) {
      for (const { query } of standbys) await query('select pg_wal_replay_pause()')
      await sleep(200)
      for (const { query } of standbys) await query('select pg_wal_replay_resume()')
      await sleep(200)
    }
  }
  const lagging = lag()
  await follow(t, primary.url, service.get).finally(() => {
    following = false
  })
  await lagging
  t.comment(`${pauses} pauses of the replay`)
})

t.test('PgBouncer in transaction mode: copies equal the lists', async (t) => {
  const login = servers.login(primary)
  const bouncer = await startPgBouncer(t, login, 3)
  const service = await startService(t, {
    databaseUrl: primary.url,
    environment: {
      DATABASE_URL: bouncer.through(login),
      DATABASE_POOLER: 'true',
    },
  })
  await follow(t, primary.url, service.get)
  await service.close()
})

t.test('Partitions: copies equal the lists', async (t) => {
  await firstValue(primary.url, 'create database partitions')
  const url = databaseUrl(primary.url, 'partitions')
  await migrate(url)
  const script = new URL('../../docs/reference/partitions.sql', import.meta.url)
  await onServer(url, await readFile(script, 'utf8'))
  const service = await startService(t, { databaseUrl: url })
  await follow(t, url, service.get)
  await service.close()
})

t.test('Two instances on the newest PostgreSQL: copies equal the lists', async (t) => {
  const { url } = await openTestDatabase(t)
  const instances = [
    await startService(t, { databaseUrl: url }),
    await startService(t, { databaseUrl: url }),
  ]
  let requests = 0
  await follow(t, url, (path, options) => {
    requests += 1
    return (instances[requests % 2] as Service).get(path, options)
  })
})
