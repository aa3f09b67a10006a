import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import t, { type Test } from 'tap'
import { codeBlocks, fillIn } from '../support/documented-commands.ts'
import { addSampleData, recordOk, requestsOf, sendAndRead } from '../support/golden-responses.ts'
import { keepDoing } from '../support/keep-doing.ts'
import { assertAllAnswered, startGoldenLoad } from '../support/load.ts'
import { openAsOwner } from '../support/logins.ts'
import { startInstance } from '../support/processes/instances.ts'
import { libpqVariables, runShell } from '../support/processes/shell.ts'
import { addAccountTransactions, addCaller, addTransferOrders } from '../support/rows.ts'
import { firstValue, migrate, startDebianPostgres } from '../support/servers/debian-postgres.ts'
import { startEmbeddedServer } from '../support/servers/embedded-postgres.ts'
import { startHaproxy } from '../support/servers/proxies.ts'
import { databaseUrl } from '../support/template.ts'

/** Moves from PostgreSQL 15 to 18, and to partitions, with the documented commands. */
const blocks = codeBlocks('Upgrade PostgreSQL')
const [create = '', subscribe = '', compare = '', end = ''] = blocks
const [split = ''] = codeBlocks('Move to partitions')
const [partition = ''] = /^psql.*$/m.exec(split) ?? []
const NAME = 'investments'
const old = await startDebianPostgres(t, { wal_level: 'logical' })
const { server: newServer } = await startEmbeddedServer(t)
await firstValue(old.url, `create database ${NAME}`)
const oldUrl = databaseUrl(old.url, NAME)
const newUrl = databaseUrl(newServer, NAME)
const login = await migrate(oldUrl)
const db = openAsOwner(t, oldUrl)
const callers = await addSampleData(db, 3_000)
const urls = {
  'postgres://SUPERUSER@OLD/investments': oldUrl,
  'postgres://SUPERUSER@NEW/investments': newUrl,
}
const password = 'of-the-owner'
const OWNER = 'owner_of_the_upgrade'
const ownerUrl = Object.assign(new URL(newUrl), { username: OWNER, password }).href
const newLogin = new URL(newUrl)
newLogin.username = 'investment_service'
newLogin.password = 'of-the-new-role'

/** Changes rows as imports do, until the returned function stops it. */
const keepImporting = (t: Test, connection: { id: string }) =>
  keepDoing(t, 50, async (turn) => {
    await addAccountTransactions(db, connection, ...Array.from({ length: 20 }, () => ({})))
    await sql`update account_transaction set description = ${`turn ${turn}`}
      where connection_id = ${connection.id}`.execute(db)
    await sql`delete from account_transaction where movement_id = any (array(
      select movement_id from account_transaction where connection_id = ${connection.id} limit 3))
    `.execute(db)
  })

t.test('200: PostgreSQL 15 to 18 with imports, and no request fails', async (t) => {
  const environment = { DATABASE_URL: login }
  const instances = [
    await startInstance(t, { environment }),
    await startInstance(t, { environment }),
  ] as const
  const proxy = await startHaproxy(t, [instances[0].port, instances[1].port])
  const golden = await recordOk(proxy.url, requestsOf(callers))
  const stopLoad = startGoldenLoad(t, { url: proxy.url, golden, clients: 4, pauseMs: 20 })
  const imported = await addCaller(db)
  await addTransferOrders(db, imported.connection, { id: randomUUID() })
  const stopImports = keepImporting(t, imported.connection)

  const values = {
    'postgres://OWNER@NEW/investments': ownerUrl,
    OWNER,
    'SERVICE_DATABASE_PASSWORD=…': `SERVICE_DATABASE_PASSWORD=${newLogin.password}`,
  }
  const input = `${password}\n${password}\n`
  await runShell(t, fillIn(create, values), libpqVariables(newServer), input)
  await runShell(t, fillIn(partition, { 'postgres://OWNER@HOST/split': ownerUrl }))
  await runShell(t, fillIn(subscribe, urls))
  await sleep(500)
  await stopImports()
  const lists = [imported.connection.account, imported.connection.orders]
  const changed = lists.map((path) => ({ path, token: imported.token }))
  const last = await recordOk(proxy.url, changed)
  const output = await runShell(
    t,
    fillIn(compare, {
      'postgres://OWNER@NEW/investments': ownerUrl,
      'postgres://SUPERUSER@OLD/investments': oldUrl,
    }),
  )
  t.match(output, /The row counts and change numbers agree with \d+ rows of 4 connections/)

  for (const instance of instances)
    await instance.restart({ environment: { DATABASE_URL: newLogin.href } })
  await sleep(1_000)
  assertAllAnswered(t, await stopLoad())
  await runShell(t, fillIn(end, urls))
  t.match(await firstValue(newUrl, 'show server_version'), /^18/)
  await old.stop()
  t.same(await recordOk(proxy.url, golden), golden, 'bodies and ETags of the new server')
  t.same(await recordOk(proxy.url, changed), last, 'the last imports too')
  const etag = String(last[0]?.etag)
  const request = { path: imported.connection.account, token: imported.token }
  const headers = { 'if-none-match': etag }
  t.equal((await sendAndRead(proxy.url, request, { headers })).status, 304)
  await addAccountTransactions(openAsOwner(t, ownerUrl), imported.connection, {})
  t.equal((await sendAndRead(proxy.url, request, { headers })).status, 200, 'triggers run again')
})
