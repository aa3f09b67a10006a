import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { exitResult } from '../../src/operator/errors.ts'
import { importRows } from '../../src/operator/loading/import-rows.ts'
import { openPool } from '../support/database.ts'
import {
  accountLine,
  chunksOf,
  orderLine,
  portfolioLine,
  prepareImport,
  uuid,
} from '../support/importing.ts'

const { run, newConnection, rowCounts, db, pool, url } = await prepareImport(t)
const type = 'portfolio-transactions'

const lines = (...all: string[]) => all.join('\n')

t.test('Import: inserts new rows, updates changed rows, skips equal rows', async (t) => {
  const connection = await newConnection()
  const first = [1, 2, 3].map((id) => portfolioLine(id, '"amount":10.50,"currency":"EUR"'))
  t.same(await run(type, connection, lines(...first)), counts({ read: 3, inserted: 3 }))
  const second = [
    portfolioLine(4),
    portfolioLine(3, '"amount":10.50,"currency":"EUR"'),
    portfolioLine(2, '"amount":10.50,"currency":"USD"'),
  ]
  t.same(
    await run(type, connection, lines(...second)),
    counts({ read: 3, inserted: 1, updated: 1, unchanged: 1 }),
  )
  const rows = await db
    .selectFrom('portfolio_transaction')
    .select(['transaction_id', 'currency'])
    .where('connection_id', '=', connection.id)
    .orderBy('transaction_id')
    .execute()
  t.same(
    rows.map(({ currency }) => currency),
    ['EUR', 'USD', 'EUR', null],
  )
  t.match(await rowCounts(connection), { portfolio: 4 })
})

t.test('Type UNKNOWN: updated by a later import', async (t) => {
  const connection = await newConnection()
  const line = portfolioLine(1)
  await run(type, connection, line.replace('BUY', 'UNKNOWN'))
  t.same(await run(type, connection, line), counts({ read: 1, updated: 1 }))
})

t.test('Unchanged rows: not written; the data version stays', async (t) => {
  const connection = await newConnection()
  const members = '"amount":1.00,"description":"a\\nb","retentionDetail":null'
  await run(type, connection, portfolioLine(1, members))
  await run('account-transactions', connection, accountLine(1))
  await run('transfer-orders', connection, orderLine(1))
  const before = await rowCounts(connection)
  const again = portfolioLine(1, members).replace(uuid(1), uuid(1).toUpperCase())
  t.same(await run(type, connection, again), counts({ read: 1, unchanged: 1 }))
  await run('account-transactions', connection, accountLine(1, '"taxes":null'))
  await run('transfer-orders', connection, orderLine(1))
  await run(type, connection, '')
  t.same(await rowCounts(connection), before)
})

t.test('Trailing zeros: 1.0 to 1.00 is an update, 100e-2 is not', async (t) => {
  const connection = await newConnection()
  await run(type, connection, portfolioLine(1, '"amount":1.0'))
  const again = (amount: string) => run(type, connection, portfolioLine(1, `"amount":${amount}`))
  t.match(await again('1.00'), { updated: 1 })
  for (const same of ['100e-2', '100E-2', '0.0100E+2', '1.00e0'])
    t.match(await again(same), { unchanged: 1 }, same)
  t.match(await again('1'), { updated: 1 })
  t.match(await again('0'), { updated: 1 })
  t.match(await again('-0'), { unchanged: 1 })
  t.match(await again('null'), { updated: 1 })
})

t.test('Missing field: null, even if it had a value', async (t) => {
  const connection = await newConnection()
  await run(
    type,
    connection,
    portfolioLine(1, '"retentionDetail":{"retentionFrom":1,"retentionTo":2}'),
  )
  t.match(await run(type, connection, portfolioLine(1)), { updated: 1 })
  t.match(await run(type, connection, portfolioLine(1, '"retentionDetail":null')), { unchanged: 1 })
})

t.test('Same row id in two connections: two rows', async (t) => {
  const [one, other] = [await newConnection(), await newConnection()]
  await run(type, one, portfolioLine(1, '"amount":1'))
  t.match(await run(type, other, portfolioLine(1, '"amount":2')), { inserted: 1 })
  t.match(await run(type, one, portfolioLine(1, '"amount":1')), { unchanged: 1 })
})

t.test('Duplicate row: rejected with both lines, across files', async (t) => {
  const { id } = await newConnection()
  const again = portfolioLine(1).replace(uuid(1), uuid(1).toUpperCase())
  const sources = [
    { name: 'a', chunks: chunksOf(lines('', portfolioLine(1), portfolioLine(2))) },
    { name: 'empty', chunks: chunksOf('') },
    { name: 'b', chunks: chunksOf(lines(portfolioLine(3), again, portfolioLine(3), again)) },
  ]
  const error = await importRows(pool, { type, connectionId: id, sources }).catch((e) => e)
  t.equal(error.total, 3)
  t.same(error.problems, [
    problem(2, 'duplicate of the row on line 2 of a'),
    problem(3, 'duplicate of the row on line 1 of b'),
    problem(4, 'duplicate of the row on line 2 of a'),
  ])
  t.match(await rowCounts({ id }), { portfolio: 0, version: 0 })

  function problem(line: number, reason: string) {
    return { file: 'b', line, field: 'transactionId', reason }
  }
})

t.test('Invalid and duplicate rows: reported together, by line', async (t) => {
  const text = lines(
    portfolioLine(1),
    portfolioLine(1),
    portfolioLine(2, '"x":1'),
    portfolioLine(1),
  )
  const error = await run(type, await newConnection(), text).catch((e) => e)
  t.same(
    error.problems.map(({ line }: { line: number }) => line),
    [2, 3, 4],
  )
})

t.test('Dry run: counts the changes and writes nothing', async (t) => {
  const connection = await newConnection()
  await run(type, connection, lines(portfolioLine(1), portfolioLine(2)))
  const before = await rowCounts(connection)
  const text = lines(portfolioLine(1), portfolioLine(2, '"amount":1'), portfolioLine(3))
  const would = await run(type, connection, text, { dryRun: true })
  t.same(would, counts({ read: 3, inserted: 1, updated: 1, unchanged: 1 }))
  t.same(await rowCounts(connection), before)
  t.same(await run(type, connection, text), would)
  await t.rejects(run(type, connection, 'x', { dryRun: true }), { name: 'ImportRejected' })
})

t.test('completedAt: now if left out, not completed if null', async (t) => {
  const connection = await newConnection()
  const order = (members?: string) => run('transfer-orders', connection, orderLine(1, members))
  await order('"completedAt":null')
  t.equal(await completedAt(connection), null)
  t.match(await order('"completedAt":null'), { unchanged: 1 })
  const before = Date.now()
  t.match(await order(), { updated: 1 })
  const completed = await completedAt(connection)
  t.ok(completed && completed.getTime() >= before - 1 && completed.getTime() <= Date.now() + 1)
  t.match(await order(), { unchanged: 1 })
  t.same(await completedAt(connection), completed)
  t.match(await order('"completedAt":"2024-01-01t12:00:00.5+02:00"'), { updated: 1 })
  t.same(await completedAt(connection), new Date('2024-01-01T10:00:00.500Z'))
  t.match(await order('"name":"N"'), { updated: 1 })
  t.same(await completedAt(connection), new Date('2024-01-01T10:00:00.500Z'))
})

t.test('Two concurrent imports into one connection: both succeed', async (t) => {
  const connection = await newConnection()
  const halves = [0, 1].map((half) =>
    lines(...Array.from({ length: 300 }, (_, index) => portfolioLine(index + half * 200))),
  )
  const done = await Promise.all(halves.map((text) => run(type, connection, text)))
  t.equal(
    done.reduce((sum, { inserted }) => sum + inserted, 0),
    500,
  )
  t.equal(
    done.reduce((sum, { unchanged }) => sum + unchanged, 0),
    100,
  )
  t.match(await rowCounts(connection), { portfolio: 500 })
})

t.test('Deleted connection: the import fails', async (t) => {
  await t.rejects(run(type, { id: '999999999' }, portfolioLine(1)), {
    message: 'The connection does not exist any more.',
  })
})

t.test('Broken database connection: rolled back and reported', async (t) => {
  const connection = await newConnection()
  async function* chunks() {
    for (let id = 0; id < 2_000; id += 1) yield Buffer.from(`${portfolioLine(id)}\n`)
    await killImporter()
    for (;;) {
      yield Buffer.from(`${portfolioLine(1)}\n`.repeat(1_000))
      await sleep(1)
    }
  }
  const sources = [{ name: 'endless', chunks: chunks() }]
  const error = await importRows(pool, { type, connectionId: connection.id, sources }).catch(
    (e) => e,
  )
  t.match(exitResult(error, false, new AbortController().signal, ''), {
    exitCode: 1,
    sentence: 'The connection to PostgreSQL broke; unfinished changes are rolled back.',
  })
  t.match(await rowCounts(connection), { portfolio: 0, version: 0 })
  t.match(await run(type, connection, portfolioLine(1)), { inserted: 1 }, 'the pool still works')
})

t.test('Read error of the input: rolled back, and the pool still works', async (t) => {
  const connection = await newConnection()
  async function* chunks() {
    yield Buffer.from(`${portfolioLine(1)}\n`)
    throw new Error('the disk is gone')
  }
  const client = openPool(t, url, { max: 1 })
  const sources = [{ name: 'broken', chunks: chunks() }]
  const importing = importRows(client, { type, connectionId: connection.id, sources })
  await t.rejects(importing, { message: 'the disk is gone' })
  const { rows } = await client.query(`select to_regclass('import_row') as "left"`)
  t.same(rows, [{ left: null }], 'the transaction is over')
  t.match(await rowCounts(connection), { portfolio: 0, version: 0 })
})

async function killImporter() {
  const { rowCount } = await pool.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and query like 'copy import_row%'`,
  )
  t.equal(rowCount, 1)
}

async function completedAt(connection: { id: string }): Promise<Date | null> {
  const { completed_at } = await db
    .selectFrom('assets_transfer_order')
    .select('completed_at')
    .where('connection_id', '=', connection.id)
    .executeTakeFirstOrThrow()
  return completed_at
}

function counts(some: { read: number; inserted?: number; updated?: number; unchanged?: number }) {
  return { inserted: 0, updated: 0, unchanged: 0, removed: 0, ...some }
}
