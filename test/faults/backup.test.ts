import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { sql } from 'kysely'
import t from 'tap'
import { openAsOwner } from '../logins.ts'
import { addCaller, addPortfolioTransactions, type Caller } from '../rows.ts'
import { databaseUrl } from '../template.ts'
import { type DebianPostgres, firstValue, migrateFor, startDebianPostgres } from './debian-postgres.ts'
import { blocksOf, withOwn } from './documented.ts'
import { allAnswered, keepAsking } from './load.ts'
import { type ServiceProcess, startServiceProcess } from './service-process.ts'
import { digestOf, fillWorld, type Known, learn, questionsOf } from './truth.ts'
import { versionsOf } from './versions.ts'

/** The commands of docs/operations.md, as they stand there, between two servers. */
const [back = '', restore = ''] = await blocksOf('Back up and restore')
const PASSWORD = 'of-the-restored-one'

t.test('What was backed up while all went on is served, and is the truth', async (t) => {
  const first = await startDebianPostgres(t)
  const url = databaseUrl(first.url, 'investments')
  await firstValue(first.url, 'create database investments')
  const login = await migrateFor(url)
  const db = openAsOwner(t, url)
  const callers = await fillWorld(db, 3_000)
  const changing = await addCaller(db)
  const versions = await versionsOf(db, changing, 50)
  const revoked = await addCaller(db)
  await addPortfolioTransactions(db, revoked.connection, {})
  const service = await startServiceProcess(t, { DATABASE_URL: login })
  const known = await learn(service.url, questionsOf(callers))
  const tags = await tagsOf(service, callers)

  const endChanging = versions.keepChanging(t, 50)
  const stop = keepAsking(t, 4, () => checkAny(service, known))
  const folder = await mkdtemp(join(tmpdir(), 'backup-'))
  t.teardown(() => rm(folder, { recursive: true }))
  const least = versions.committed
  await shell(withOwn(back, { 'postgres://OWNER@HOST/investments': url, investments.dump: dump }))
})
