import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import t from 'tap'
import { addChangingRows } from '../support/changing-rows.ts'
import { codeBlocks, fillIn } from '../support/documented-commands.ts'
import { addSampleData, recordOk, requestsOf, sendAndRead } from '../support/golden-responses.ts'
import { assertAllAnswered, startGoldenLoad } from '../support/load.ts'
import { openAsOwner } from '../support/logins.ts'
import { startServiceProcess } from '../support/processes/service-process.ts'
import { libpqVariables, runShell } from '../support/processes/shell.ts'
import { addCaller } from '../support/rows.ts'
import {
  firstValue,
  migrate,
  roleSettings,
  startDebianPostgres,
  startOtherPostgres,
} from '../support/servers/debian-postgres.ts'
import { databaseUrl } from '../support/template.ts'

/** Backup and restore on another server, with the documented commands. */
const [createDatabase = ''] = codeBlocks('Roles and database')
const [backUp = '', restore = ''] = codeBlocks('Back up and restore')
const folder = await mkdtemp(join(tmpdir(), 'backup-'))
t.teardown(() => rm(folder, { recursive: true }))
const dump = { 'investments.dump': `${folder}/dump` }
const OWNER = 'postgres://OWNER@HOST/investments'
/** The owner is no superuser. */
const owner = 'database_owner'
const password = 'of-the-owner'
/** The commands ask for the password twice. */
const input = `${password}\n${password}\n`
const asOwner = (server: string) =>
  Object.assign(new URL(databaseUrl(server, 'investments')), { username: owner, password }).href

const first = await startDebianPostgres(t)
await runShell(t, fillIn(createDatabase, { OWNER: owner }), libpqVariables(first.url), input)
const url = asOwner(first.url)
const login = await migrate(url)
const db = openAsOwner(t, url)
const callers = await addSampleData(db, 3_000)
const [changedLater = await addCaller(db)] = callers
const changingCaller = await addCaller(db)
const versions = await addChangingRows(db, changingCaller, 50)

const second = await startOtherPostgres(t)
const restoredUrl = asOwner(second.url)
const restoredLogin = new URL(restoredUrl)
restoredLogin.username = 'investment_service'
restoredLogin.password = 'of-the-restored-role'

const before = await startServiceProcess(t, { DATABASE_URL: login })
const golden = await recordOk(before.url, requestsOf(callers))

t.test('200: backup and restore cost no request, and the backup is one snapshot', async (t) => {
  const stopChanges = versions.keepChanging(t, 20)
  const stopLoad = startGoldenLoad(t, { url: before.url, golden, clients: 4 })
  const least = versions.committed
  await runShell(t, fillIn(backUp, { [OWNER]: url, ...dump }))
  const most = versions.begun
  const values = {
    [OWNER]: restoredUrl,
    OWNER: owner,
    ...dump,
    'SERVICE_DATABASE_PASSWORD=…': `SERVICE_DATABASE_PASSWORD=${restoredLogin.password}`,
  }
  const output = await runShell(t, fillIn(restore, values), libpqVariables(second.url), input)
  t.match(output, 'The schema is up to date.')
  t.match(output, /\b18100 rows of 4 connections/)
  assertAllAnswered(t, await stopLoad())
  await stopChanges()

  const seen = await openAsOwner(t, restoredUrl)
    .selectFrom('portfolio_transaction')
    .where('connection_id', '=', changingCaller.connection.id)
    .select('description')
    .distinct()
    .execute()
  t.equal(seen.length, 1, 'one version of the rows')
  const version = Number(seen[0]?.description)
  t.ok(version >= least && version <= most, `version ${version}, expected ${least} to ${most}`)
  t.ok(versions.committed > most, 'the rows changed after the backup')
})

t.test('304: the restored database has the responses and ETags of the backup', async (t) => {
  const after = await startServiceProcess(t, { DATABASE_URL: restoredLogin.href })
  t.equal(await after.ready(), 200)
  t.same(await recordOk(after.url, golden), golden)
  for (const response of golden) {
    const headers = { 'if-none-match': String(response.etag) }
    t.equal((await sendAndRead(after.url, response, { headers })).status, 304, response.path)
  }
})

t.test('200: a change after the restore gets an ETag that no lost change had', async (t) => {
  const after = await startServiceProcess(t, { DATABASE_URL: restoredLogin.href })
  const { connection, token } = changedLater
  const request = { path: `${connection.portfolio}?limit=1`, token }
  const change = (database: typeof db, description: string) =>
    sql`update portfolio_transaction set description = ${description}
      where connection_id = ${connection.id}`.execute(database)
  await change(db, 'lost')
  const etag = String((await sendAndRead(before.url, request)).headers.get('etag'))
  await change(openAsOwner(t, restoredUrl), 'after the restore')
  const headers = { 'if-none-match': etag }
  const response = await sendAndRead(after.url, request, { headers })
  t.equal(response.status, 200, 'not 304')
  t.match(response.text, '"after the restore"')
  const numberOf = (header: unknown) => /"(\d+)/.exec(String(header))?.[1]
  t.equal(numberOf(response.headers.get('etag')), numberOf(etag), 'the number of changes is equal')
  t.not(response.headers.get('etag'), etag)
})

t.test('Restored database: the role of the service can only read what it serves', async (t) => {
  const role = 'investment_service'
  t.same(await roleSettings(restoredUrl, role), await roleSettings(url, role))
  const rights = `select array_agg(acl::text order by acl::text) from (
    select unnest(relacl) from pg_class union all select unnest(attacl) from pg_attribute) as x (acl)
    where acl::text like 'investment_service=%'`
  const granted = await firstValue(restoredUrl, rights)
  t.same(granted, await firstValue(url, rights))
  t.ok(Array.isArray(granted) && granted.length > 0)
  const asService = (statement: string) => firstValue(restoredLogin.href, statement)
  t.equal(await asService('select count(*)::int from portfolio_transaction'), 0, 'without a token')
  await t.rejects(asService('delete from portfolio_transaction'), { code: '25006' })
  const writing = `${restoredLogin.href}?options=-c%20default_transaction_read_only%3Doff`
  await t.rejects(firstValue(writing, 'delete from portfolio_transaction'), { code: '42501' })
})
