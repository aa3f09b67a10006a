import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import type { ListName } from '../../src/operator/loading/row-types.ts'
import { verifyRowCounts } from '../../src/operator/verify.ts'
import { AccountTransactions } from '../../src/schemas/account-transaction.ts'
import { PortfolioTransactions } from '../../src/schemas/portfolio-transaction.ts'
import { openClient } from '../support/database.ts'
import { accountLine, orderLine, portfolioLine, prepareImport, uuid } from '../support/importing.ts'
import { operatorHere, startOperator } from '../support/operator-process.ts'
import { addCaller, addConnection, type Caller } from '../support/rows.ts'
import { startService } from '../support/service.ts'
import { until } from '../support/until.ts'
import { withLengths } from '../support/with-lengths.ts'

const { run, db, pool, url } = await prepareImport(t)
const { get } = await startService(t, { databaseUrl: url })
const folder = t.testdir()

const dated = (line: string, day: string) => line.replace('2024-02-29', day)
const all = (line: (id: number) => string, ...ids: number[]) => ids.map((id) => line(id)).join('\n')

/** Path of a new file. */
async function fileOf(name: string, lines: string): Promise<string> {
  await writeFile(join(folder, name), lines)
  return join(folder, name)
}

const lists = {
  portfolio: { ...PortfolioTransactions, line: portfolioLine },
  account: { ...AccountTransactions, line: accountLine },
} as const

/** Ids of the rows in a list, each with its effective date, and the headers of the response. */
async function read({ token, connection }: Caller, list: keyof typeof lists) {
  const { headers, json } = await get(connection[list], { token })
  const rows = (json().items as Record<string, string>[]).map(
    (row) => `${Number(String(row[lists[list].id]).slice(-12))} ${row.operationDateDay}`,
  )
  return { rows: rows.sort(), etag: headers.get('etag') }
}

for (const list of ['portfolio', 'account'] as const) {
  const { name: type, line } = lists[list]

  t.test(`${list}: rows of the range that the input lacks are removed`, async (t) => {
    const caller = await addCaller(db)
    const { token, connection } = caller
    const days = ['2024-01-31', '2024-02-01', '2024-02-29', '2024-02-29', '2024-03-01']
    await run(type, connection, days.map((day, id) => dated(line(id), day)).join('\n'))
    await run(type, await addConnection(db, caller.appId), line(3))
    const before = await read(caller, list)
    const { nextCursor } = (await get(`${connection[list]}?since=start`, { token })).json()

    const replace = { from: '2024-02-01', to: '2024-02-29' }
    const input = `${dated(line(1), '2024-02-02')}\n${line(2)}\n${dated(line(0), '2024-02-01')}`
    const expected = { read: 3, inserted: 0, updated: 2, unchanged: 1, removed: 1 }
    t.same(await run(type, connection, input, { replace, dryRun: true }), expected)
    t.same(await read(caller, list), before, 'a dry run changes nothing')
    t.same(await run(type, connection, input, { replace }), expected)
    const after = await read(caller, list)
    t.same(after.rows, ['0 2024-02-01', '1 2024-02-02', '2 2024-02-29', '4 2024-03-01'])
    t.not(after.etag, before.etag)
    const changes = (await get(`${connection[list]}?since=${nextCursor}`, { token })).json()
    t.equal(changes.items.length, 2)
    t.same(changes.removed, [uuid(3)])
    t.match(changes, { totalItems: 4, hasMore: false })
    t.same((await verifyRowCounts(db)).differences, [])
    t.same(await run(type, connection, input, { replace }), {
      ...expected,
      updated: 0,
      unchanged: 3,
      removed: 0,
    })
    t.equal((await read(caller, list)).etag, after.etag, 'the same input again changes nothing')

    for (const open of [{ to: '2024-02-01' }, { from: '2024-03-01' }, {}])
      t.match(await run(type, connection, '', { replace: { ...open, yes: true } }), { read: 0 })
    t.same((await read(caller, list)).rows, [])
  })
}

t.test('transfer orders: those that the input lacks are removed', async (t) => {
  const { token, connection } = await addCaller(db)
  await run('transfer-orders', connection, all(orderLine, 1, 2, 3))
  const replaced = await run('transfer-orders', connection, all(orderLine, 2, 3), { replace: {} })
  t.same(replaced, { read: 2, inserted: 0, updated: 0, unchanged: 2, removed: 1 })
  const { json } = await get(connection.orders, { token })
  t.same(
    json()
      .map(({ id }: { id: string }) => id)
      .sort(),
    [uuid(2), uuid(3)],
  )
})

t.test('more than half of the rows: removed only with yes', async (t) => {
  const types: [ListName, (id: number) => string][] = [
    ['portfolio-transactions', portfolioLine],
    ['transfer-orders', orderLine],
  ]
  for (const [type, line] of types) {
    const { connection } = await addCaller(db)
    const remove = (input: string, yes?: true) =>
      run(type, connection, input, { replace: { yes } }).then(
        ({ removed }) => removed,
        ({ message }) => message.replace(/ that .*/, ''),
      )
    t.equal(await remove(''), 0, 'a connection without rows')
    await run(type, connection, all(line, 1, 2, 3, 4))
    t.equal(await remove(''), 'The input lacks 4 of the 4 rows')
    t.equal(await remove(all(line, 4, 5, 6, 7, 8)), 'The input lacks 3 of the 4 rows')
    t.equal(await remove(all(line, 1, 2)), 2, 'half of the rows')
    t.equal(await remove('', true), 2)
  }
  // Rows outside of the range do not count.
  const { connection } = await addCaller(db)
  const days = ['2024-02-29', '2024-03-01', '2024-03-01', '2024-03-01']
  const input = days.map((day, id) => dated(portfolioLine(id), day)).join('\n')
  await run('portfolio-transactions', connection, input)
  const replace = { to: '2024-02-29' }
  await t.rejects(run('portfolio-transactions', connection, '', { replace }), /1 of the 1 row that/)
})

t.test('invalid input: each line is named, and nothing is removed', async (t) => {
  const caller = await addCaller(db)
  const { id } = caller.connection
  await run('portfolio-transactions', caller.connection, all(portfolioLine, 1, 2, 3))
  const before = await read(caller, 'portfolio')
  const rows = [
    dated(portfolioLine(1), '2024-03-01'),
    portfolioLine(2),
    portfolioLine(2),
    dated(portfolioLine(3), '2024-01-31').replace('operationDateDay', 'valueDateDay'),
    portfolioLine(4, '"operationDateDay":"2024-02-30"'),
  ]
  const file = await fileOf('invalid.ndjson', rows.join('\n'))
  const flags = ['--replace', '--yes', '--from', '2024-02-01', '--to', '2024-02-29', '--json']
  const command = ['import', 'portfolio-transactions', '--connection', id, file, ...flags]
  const { code, json } = await operatorHere(command, { DATABASE_URL: url })
  t.equal(code, 1)
  const { faults, total } = json()
  const named = faults.map(
    ({ line, reason }: { line: number; reason: string }) => `${line} ${reason}`,
  )
  const outside = (day: string) =>
    `the effective date ${day} is outside of the replaced range, 2024-02-01 to 2024-02-29`
  t.match(
    named,
    withLengths([
      `1 ${outside('2024-03-01')}`,
      /^3 duplicate of the row on line 2/,
      `4 ${outside('2024-01-31')}`,
      /^5 /,
    ]),
  )
  t.ok(total >= 4)
  t.same(await read(caller, 'portfolio'), before)
})

t.test('operator import: --from, --to and --yes need --replace', async (t) => {
  const { connection } = await addCaller(db)
  const file = await fileOf('valid.ndjson', all(portfolioLine, 1, 2))
  const importing = (type: string, ...flags: string[]) =>
    operatorHere(['import', type, '--connection', connection.id, file, ...flags], {
      DATABASE_URL: url,
    })
  const type = 'portfolio-transactions'
  const wrong: [string[], RegExp][] = [
    [['--from', '2024-01-01'], /need --replace/],
    [['--to', '2024-01-01', '--dry-run'], /need --replace/],
    [['--yes'], /need --replace/],
    [['--replace', '--from', '2024-02-30'], /existing day/],
    [['--replace', '--from', '2024-02-02', '--to', '2024-02-01'], /--from must not be after --to/],
  ]
  for (const [flags, message] of wrong)
    t.match(await importing(type, ...flags), { code: 2, stdout: '', stderr: message })
  t.match(await importing('transfer-orders', '--replace', '--from', '2024-02-01'), {
    code: 2,
    stderr: /unknown option/i,
  })
  const done = { read: 2, inserted: 2, updated: 0, unchanged: 0, removed: 0 }
  t.match((await importing(type, '--replace', '--json')).json(), done)
  await run(type, connection, portfolioLine(3))
  t.match(await importing(type, '--replace', '--dry-run'), {
    stdout:
      /^Read 2 rows: 0 would be inserted, 0 would be updated, 2 are unchanged, 1 would be removed.\n/,
  })
  t.match(await importing(type, '--replace'), {
    stdout: /^Read 2 rows: 0 inserted, 0 updated, 2 unchanged, 1 removed.\n/,
  })
})

for (const end of ['SIGINT', 'SIGKILL', 'a crash of its session'] as const) {
  t.test(`${end} between the new rows and the removal: nothing has changed`, async (t) => {
    const caller = await addCaller(db)
    const { id } = caller.connection
    await run('portfolio-transactions', caller.connection, all(portfolioLine, 1, 2, 3))
    const before = await read(caller, 'portfolio')
    // Blocks the removal of row 3.
    const holder = await openClient(t, url)
    await holder.query('begin')
    await holder.query(
      'select from portfolio_transaction where connection_id = $1 and transaction_id = $2 for share',
      [id, uuid(3)],
    )
    const file = await fileOf('some.ndjson', all(portfolioLine, 1, 2, 4))
    const flags = ['import', 'portfolio-transactions', '--connection', id, file, '--replace']
    const { child, stderr, closed } = startOperator(flags, { env: { DATABASE_URL: url } })
    const removing = `from pg_stat_activity where datname = current_database()
      and query like '-- Deletes the rows of the range that the input lacks.%'`
    await until('the removal waits', async () => {
      return (await pool.query(`select ${removing} and state = 'active'`)).rowCount === 1
    })
    if (end === 'SIGINT' || end === 'SIGKILL') child.kill(end)
    else await pool.query(`select pg_terminate_backend(pid) ${removing}`)
    await closed
    if (end === 'SIGINT') t.match(stderr(), 'Interrupted; nothing was imported.')
    await until('the session has ended', async () => {
      return (await pool.query(`select ${removing} and state <> 'idle'`)).rowCount === 0
    })
    await holder.query('rollback')
    t.same(await read(caller, 'portfolio'), before)
    t.same((await verifyRowCounts(db)).differences, [])
  })
}

t.test('concurrent imports: the rows of the last one, and a copy equals the list', async (t) => {
  const caller = await addCaller(db)
  const { token, connection } = caller
  const type = 'portfolio-transactions'
  const inputs = [all(portfolioLine, 1, 2, 3, 4), all(portfolioLine, 3, 4, 5, 6)]
  const copy = new Set<string>()
  let since = 'start'
  for (let round = 0; round < 10; round += 1) {
    const replace = { yes: true }
    await Promise.all([
      ...inputs.map((input) => run(type, connection, input, { replace })),
      run(type, connection, all(portfolioLine, 7, 8)),
    ])
    const { rows } = await read(caller, 'portfolio')
    const ids = rows.map((row) => row.split(' ')[0]).join()
    t.match(ids, /^(1,2,3,4|3,4,5,6)(,7,8)?$/)
    const page = (await get(`${connection.portfolio}?since=${since}`, { token })).json()
    for (const item of page.items) copy.add(item.transactionId)
    for (const id of page.removed) copy.delete(id)
    since = page.nextCursor
    t.equal(
      [...copy]
        .map((id) => Number(id.slice(-12)))
        .sort()
        .join(),
      ids,
    )
    t.equal(page.totalItems, copy.size)
  }
  t.same((await verifyRowCounts(db)).differences, [])
})
