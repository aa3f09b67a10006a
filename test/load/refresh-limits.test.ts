import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import t from 'tap'
import { withDatabase } from '../../src/operator/database.ts'
import { refresh as refreshAll } from '../../src/operator/loading/refresh.ts'
import { openClient } from '../support/database.ts'
import { accountLine, orderLine, portfolioLine, prepareImport } from '../support/importing.ts'
import { operatorHere } from '../support/operator-process.ts'
import {
  counts,
  line,
  lockConnection,
  parse,
  refreshing,
  startRefresh,
} from '../support/refreshing.ts'
import { until } from '../support/until.ts'
import { withLengths } from '../support/with-lengths.ts'

/** Limits of `refresh` that take seconds or much memory to reach. */
const importing = await prepareImport(t)
const { url, newConnection, rowCounts } = importing
const { fileOf } = refreshing(t)

t.test('a line of 17 MB: it fails, and the next line is written', async (t) => {
  const connection = await newConnection()
  const path = await fileOf('')
  const file = createWriteStream(path)
  file.write('{"connection":"')
  for (let megabytes = 0; megabytes < 17; megabytes += 1) file.write('x'.repeat(2 ** 20))
  file.end(`"}\n${line(connection, { portfolio: [portfolioLine(1)] })}`)
  await once(file, 'finish')
  const { stdout } = await operatorHere(['refresh', path], { DATABASE_URL: url })
  t.match(
    parse(stdout),
    withLengths([
      { line: 1, errors: [{ detail: 'the line is longer than 16777216 bytes' }] },
      { line: 2, portfolioTransactions: counts(1) },
    ]),
  )
})

t.test('lines that are read ahead: 64, or 16 MiB', async (t) => {
  const connection = await newConnection()
  const holder = await openClient(t, url)
  const cases = [
    { lines: 200, padding: 0, least: 60, most: 66 },
    { lines: 8, padding: 6 * 2 ** 20, least: 2, most: 5 },
  ]
  for (const { lines, padding, least, most } of cases) {
    await holder.query('begin')
    await holder.query('select from connection where id = $1 for update', [connection.id])
    let read = 0
    async function* chunks() {
      for (; read < lines; read += 1)
        yield Buffer.from(`${line(connection, {})}${' '.repeat(padding)}\n`)
    }
    const refreshing = withDatabase(
      url,
      { signal: new AbortController().signal, notice: () => {}, pooler: false },
      (database) =>
        refreshAll(database, {
          sources: [{ name: 'lines', chunks: chunks() }],
          jobs: 2,
          appId: undefined,
          onResult: async () => true,
          notice: () => {},
        }),
    )
    await until('lines are read ahead', () => read >= least)
    // Without a limit, it would read more during these round trips.
    for (let trip = 0; trip < 100; trip += 1) await holder.query('select 1')
    t.ok(read <= most, `${read} lines`)
    await holder.query('commit')
    t.same(await refreshing, { refreshed: lines, failed: 0 })
  }
})

t.test(
  'SIGTERM: a line that cannot be finished in 10 s is rolled back, without a result',
  async (t) => {
    const { locked, free, holder } = await lockConnection(t, importing)
    const { child, results } = startRefresh(url, '--jobs', '2')
    child.stdin.write(`${line(locked, { account: [accountLine(1)] })}\n`)
    child.stdin.write(`${line(free, { account: [accountLine(1)] })}\n`)
    await until('the free line is done', () => results.length === 1)
    const exit = once(child, 'exit')
    child.kill('SIGTERM')
    t.same(await exit, [null, 'SIGTERM'])
    t.match(results, withLengths([{ line: 2 }]))
    await holder.query('commit')
    t.match(await rowCounts(locked), { account: 0 })
  },
)

t.test('a full disk: the line waits for space, and is then written', async (t) => {
  const { url, pool, newConnection, rowCounts } = await prepareImport(t)
  const connection = await newConnection()
  // PostgreSQL reports this SQLSTATE if a table cannot grow.
  await pool.query(`
    create function no_space() returns trigger language plpgsql as $$ begin
      raise 'could not extend file: No space left on device' using errcode = 'disk_full'; end $$;
    create trigger no_space before insert on account_transaction execute function no_space()`)
  const { child, results, stderr } = startRefresh(url)
  child.stdin.end(`${line(connection, { account: [accountLine(1)] })}\n`)
  await until('the line waits', () => stderr().includes('The disk of PostgreSQL is full'))
  // Several attempts have one message.
  await new Promise((resolve) => setTimeout(resolve, 2_500))
  t.equal(stderr().split('The disk of PostgreSQL is full').length, 2)
  await pool.query('drop trigger no_space on account_transaction')
  t.same(await once(child, 'exit'), [0, null])
  t.equal(results.length, 1)
  t.match(await rowCounts(connection), { account: 1 })
})

t.test('a reader of the results that stops reading: the refresh stops reading, too', async (t) => {
  const connection = await newConnection()
  const { child } = startRefresh(url)
  child.stdout.pause()
  const rows = `${line(connection, { orders: [orderLine(1)] })}\n`
  let written = 0
  const writing = (async () => {
    for (; written < 20_000; written += 1)
      if (!child.stdin.write(rows)) await once(child.stdin, 'drain')
    child.stdin.end()
  })().catch(() => {})
  let before = -1
  while (before !== written || before < 100) {
    before = written
    await new Promise((resolve) => setTimeout(resolve, 1_000))
  }
  t.ok(written < 20_000, `${written} lines were taken`)
  child.kill('SIGKILL')
  await writing
})
