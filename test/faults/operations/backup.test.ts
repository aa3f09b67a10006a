import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import t from 'tap'
import { openAsOwner } from '../../support/logins.ts'
import { addCaller } from '../../support/rows.ts'
import { databaseUrl } from '../../support/template.ts'
import { blocksOf, withOwn } from '../support/documented-commands.ts'
import { allAnswered, keepAsking } from '../support/load.ts'
import { startServiceProcess } from '../support/processes/service-process.ts'
import { clientOf, runShell } from '../support/processes/shell.ts'
import {
  firstValue,
  migrateFor,
  settingsOf,
  startDebianPostgres,
} from '../support/servers/debian-postgres.ts'
import {
  faultOf,
  fillWorld,
  type Known,
  learn,
  type Question,
  questionsOf,
} from '../support/truth.ts'
import { versionsOf } from '../support/versions.ts'

/** Backed up and restored on another server, by the commands of docs/operations.md. */
const [beginning = ''] = await blocksOf('Deploy')
const [backUp = '', restore = ''] = await blocksOf('Back up and restore')
const folder = await mkdtemp(join(tmpdir(), 'backup-'))
t.teardown(() => rm(folder, { recursive: true }))
const dump = { 'investments.dump': `${folder}/dump` }
const OWNER = 'postgres://OWNER@HOST/investments'
/** No superuser; the password is asked for twice. */
const owner = 'keeper'
const password = 'of-the-keeper'
const typed = `${password}\n${password}\n`
const asOwner = (server: string) =>
  Object.assign(new URL(databaseUrl(server, 'investments')), { username: owner, password }).href

const first = await startDebianPostgres(t)
await runShell(t, withOwn(beginning, { OWNER: owner }), clientOf(first.url), typed)
const url = asOwner(first.url)
const login = await migrateFor(url)
const db = openAsOwner(t, url)
const callers = await fillWorld(db, 3_000)
const [changedLater = await addCaller(db)] = callers
const changing = await addCaller(db)
const versions = await versionsOf(db, changing, 50)

const second = await startDebianPostgres(t)
const restoredUrl = asOwner(second.url)
const restoredLogin = new URL(restoredUrl)
restoredLogin.username = 'investment_service'
restoredLogin.password = 'of-the-restored-one'

const before = await startServiceProcess(t, { DATABASE_URL: login })
const known = await learn(before.url, questionsOf(callers))
const tags = await Promise.all(known.map((question) => tagOf(before.url, question)))

t.test('A backup and its restoring cost no request, although rows change meanwhile', async (t) => {
  const endChanges = versions.keepChanging(t, 20)
  let turn = 0
  const stop = keepAsking(t, 4, () => {
    turn += 1
    return faultOf(before.url, known[turn % known.length] as Known)
  })
  const least = versions.committed
  await runShell(t, withOwn(backUp, { [OWNER]: url, ...dump }))
  const most = versions.begun
  const own = {
    [OWNER]: restoredUrl,
    OWNER: owner,
    ...dump,
    'SERVICE_DATABASE_PASSWORD=…': `SERVICE_DATABASE_PASSWORD=${restoredLogin.password}`,
  }
  const told = await runShell(t, withOwn(restore, own), clientOf(second.url), typed)
  t.match(told, 'The schema is up to date.')
  t.match(told, /The row counts agree with 18100 rows of 4 connections/)
  allAnswered(t, await stop())
  await endChanges()

  const seen = await openAsOwner(t, restoredUrl)
    .selectFrom('portfolio_transaction')
    .where('connection_id', '=', changing.connection.id)
    .select('description')
    .distinct()
    .execute()
  t.equal(seen.length, 1, 'one version of the rows')
  const version = Number(seen[0]?.description)
  t.ok(version >= least && version <= most, `version ${version}, of ${least} to ${most}`)
  t.ok(versions.committed > most, 'and they went on to change')
})

t.test('The restored database gives the answers and the tags of the backup', async (t) => {
  const after = await startServiceProcess(t, { DATABASE_URL: restoredLogin.href })
  t.equal(await after.ready(), 200)
  t.same(await learn(after.url, known), known)
  for (const [index, question] of known.entries()) {
    t.equal(await tagOf(after.url, question), tags[index])
    t.equal((await ask(after.url, question, tags[index])).status, 304, question.path)
  }
})

t.test('A change after restoring gets a tag that a lost one never had', async (t) => {
  const after = await startServiceProcess(t, { DATABASE_URL: restoredLogin.href })
  const { connection, token } = changedLater
  const question = { path: `${connection.portfolio}?limit=1`, token }
  const change = (database: typeof db, description: string) =>
    sql`update portfolio_transaction set description = ${description}
      where connection_id = ${connection.id}`.execute(database)
  await change(db, 'lost')
  const tag = await tagOf(before.url, question)
  await change(openAsOwner(t, restoredUrl), 'of the restored one')
  const answer = await ask(after.url, question, tag)
  t.equal(answer.status, 200, 'not 304')
  t.match(await answer.text(), '"of the restored one"')
  const version = (of: unknown) => /"(\d+)/.exec(String(of))?.[1]
  t.equal(version(answer.headers.get('etag')), version(tag), 'the count of changes is the same')
  t.not(answer.headers.get('etag'), tag)
})

t.test('The role of the service may read what it serves there, and nothing else', async (t) => {
  const role = 'investment_service'
  t.same(await settingsOf(restoredUrl, role), await settingsOf(url, role))
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

function ask(service: string, { path, token }: Question, tag?: string): Promise<Response> {
  const condition = tag === undefined ? {} : { 'if-none-match': tag }
  return fetch(service + path, { headers: { authorization: `Bearer ${token}`, ...condition } })
}

async function tagOf(service: string, question: Question): Promise<string> {
  const answer = await ask(service, question)
  await answer.arrayBuffer()
  return String(answer.headers.get('etag'))
}
