import t from 'tap'
import { codeBlocks, fillIn } from '../support/documented-commands.ts'
import {
  addSampleData,
  recordOk,
  requestsOf,
  sendAndRead,
  type TestRequest,
} from '../support/golden-responses.ts'
import { openAsOwner } from '../support/logins.ts'
import { startServiceProcess } from '../support/processes/service-process.ts'
import { runShell } from '../support/processes/shell.ts'
import { addAccountTransactions, addCaller } from '../support/rows.ts'
import {
  firstValue,
  logOfEnded,
  migrate,
  newDirectory,
  onPort,
  startDebianPostgres,
  startPrepared,
} from '../support/servers/debian-postgres.ts'
import { databaseUrl } from '../support/template.ts'
import { until } from '../support/until.ts'

/** Recovery to a point in time, with the documented commands. */
const blocks = codeBlocks('Recover to a point in time')
const [archive = '', backUp = '', recover = '', check = ''] = blocks
const SUPERUSER = 'postgres://SUPERUSER@HOST/postgres'
const { folder: ARCHIVE } = await newDirectory(t)
const { folder } = await newDirectory(t)
const BACKUP = `${folder}/backup`

const old = await startDebianPostgres(t)
await runShell(t, fillIn(archive, { [SUPERUSER]: old.url, ARCHIVE }))
await old.stop()
await old.start()
await firstValue(old.url, 'create database investments')
const url = databaseUrl(old.url, 'investments')
const login = await migrate(url)
const db = openAsOwner(t, url)
const callers = await addSampleData(db, 300)
await runShell(t, fillIn(backUp, { [SUPERUSER]: old.url, BACKUP }))

const changesSince = (url: string, { path, token }: TestRequest, cursor: string) =>
  sendAndRead(url, { path: `${path}?since=${cursor}`, token })

async function cursorOf(url: string, list: TestRequest): Promise<string> {
  return JSON.parse((await changesSince(url, list, 'start')).text).nextCursor
}

t.test(
  'Recovery: responses of the chosen time, and no ETag or cursor of the lost time',
  async (t) => {
    const before = await startServiceProcess(t, { DATABASE_URL: login })
    const { token, connection } = await addCaller(db)
    await addAccountTransactions(db, connection, { description: 'after the backup' })
    const requests = [...requestsOf(callers), { path: connection.account, token }]
    const golden = await recordOk(before.url, requests)

    const time = String(await firstValue(url, 'select clock_timestamp()::text'))
    const list = { path: connection.account, token }
    const known = await cursorOf(before.url, list)
    await addAccountTransactions(db, connection, { description: 'lost' })
    const lost = String((await sendAndRead(before.url, list)).headers.get('etag'))
    const lostCursor = await cursorOf(before.url, list)
    const written = await firstValue(url, 'select pg_walfile_name(pg_switch_wal())')
    const archived = 'select last_archived_wal from pg_stat_archiver'
    await until(
      'the archive is complete',
      async () => (await firstValue(url, archived)) === written,
    )

    const server = await startPrepared(t, (DATA) => {
      const values = { BACKUP, ARCHIVE, DATA, '2026-07-01 12:00:00+00': time }
      return runShell(t, fillIn(recover, values))
    })
    const recovering = () => firstValue(server.url, 'select pg_is_in_recovery()')
    await until('the recovery has ended', async () => (await recovering()) === false)
    const recovered = onPort(url, server.port)
    const OWNER = 'postgres://OWNER@HOST/investments'
    const output = await runShell(t, fillIn(check, { [OWNER]: recovered }))
    t.match(output, /The row counts and change numbers agree with 1801 rows/)

    const after = await startServiceProcess(t, { DATABASE_URL: onPort(login, server.port) })
    t.same(await recordOk(after.url, requests), golden, 'rows, totals and ETags of that time')
    await addAccountTransactions(openAsOwner(t, recovered), connection, { description: 'new' })
    const headers = { 'if-none-match': lost }
    const response = await sendAndRead(after.url, list, { headers })
    t.equal(response.status, 200, 'not 304')
    t.match(response.text, '"new"')

    const lostChanges = await changesSince(after.url, list, lostCursor)
    t.equal(lostChanges.status, 410)
    t.equal(JSON.parse(lostChanges.text).code, 'cursor_expired')
    const changes = await changesSince(after.url, list, known)
    t.equal(changes.status, 200)
    t.match(changes.text, '"new"')
    t.notMatch(changes.text, '"lost"')
    const again = await cursorOf(after.url, list)
    await addAccountTransactions(openAsOwner(t, recovered), connection, { description: 'newest' })
    t.match((await changesSince(after.url, list, again)).text, '"newest"')
  },
)

t.test('Recovery to a time after the end of the archive: PostgreSQL does not start', async (t) => {
  const log = await logOfEnded(t, (DATA) => {
    const values = { BACKUP, ARCHIVE, DATA, '2026-07-01 12:00:00+00': '2999-01-01 12:00:00+00' }
    return runShell(t, fillIn(recover, values))
  })
  t.match(log, 'recovery ended before configured recovery target was reached')
})
