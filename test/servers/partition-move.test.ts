import t from 'tap'
import { codeBlocks, fillIn } from '../support/documented-commands.ts'
import { addSampleData, recordOk, requestsOf } from '../support/golden-responses.ts'
import { assertAllAnswered, startGoldenLoad } from '../support/load.ts'
import { openAsOwner } from '../support/logins.ts'
import { startServiceProcess } from '../support/processes/service-process.ts'
import { libpqVariables, runShell } from '../support/processes/shell.ts'
import {
  firstValue,
  migrate,
  newDirectory,
  startDebianPostgres,
} from '../support/servers/debian-postgres.ts'
import { databaseUrl } from '../support/template.ts'

/** Move of a database in use to partitions, with the documented commands. */
const [move = ''] = codeBlocks('Move to partitions')
const { folder } = await newDirectory(t)
const server = await startDebianPostgres(t)
await firstValue(server.url, 'create database investments')
const whole = databaseUrl(server.url, 'investments')
const split = databaseUrl(server.url, 'split')
const login = await migrate(whole)
const callers = await addSampleData(openAsOwner(t, whole), 3_000)

t.test('200: the move to partitions: no request fails, and no response changes', async (t) => {
  const before = await startServiceProcess(t, { DATABASE_URL: login })
  const golden = await recordOk(before.url, requestsOf(callers))
  const stop = startGoldenLoad(t, { url: before.url, golden, clients: 4 })
  const values = {
    'postgres://OWNER@HOST/split': split,
    'postgres://OWNER@HOST/investments': whole,
    OWNER: 'postgres',
    'rows.dump': `${folder}/rows.dump`,
  }
  const output = await runShell(t, fillIn(move, values), libpqVariables(server.url))
  t.match(output, /The row counts and change numbers agree with 18000 rows of 3 connections/)
  assertAllAnswered(t, await stop())

  const partitions = `select count(*)::int from pg_inherits where inhparent = 'portfolio_transaction'::regclass`
  t.equal(await firstValue(split, partitions), 16)
  const after = await startServiceProcess(t, { DATABASE_URL: databaseUrl(login, 'split') })
  t.same(await recordOk(after.url, golden), golden, 'bodies and ETags')
})
