import type { Socket } from 'node:net'
import { join } from 'node:path'
import { sql } from 'kysely'
import t from 'tap'
import { importRows } from '../../src/operator/loading/import-rows.ts'
import { verifyRowCounts } from '../../src/operator/verify.ts'
import { openClient, openPool } from '../support/database.ts'
import { accountLine, chunksOf, portfolioLine, prepareImport, uuid } from '../support/importing.ts'
import { operatorHere, operatorWaits } from '../support/operator-process.ts'
import { forward, startTcpProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'

const { run, db, url, newConnection } = await prepareImport(t)

t.test('statement_timeout of the login: it ends neither an import nor a refresh', async (t) => {
  const login = new URL(url)
  login.searchParams.set('options', '-c statement_timeout=300ms')
  const lock = await openClient(t, url)
  const connection = await newConnection()
  const folder = t.testdir({
    rows: accountLine(1),
    lines: JSON.stringify({ connection: connection.id, accountTransactions: [] }).replace(
      '[]',
      `[${accountLine(2)}]`,
    ),
  })
  for (const command of [
    ['import', 'account-transactions', '--connection', connection.id, join(folder, 'rows')],
    ['refresh', join(folder, 'lines')],
  ]) {
    await lock.query('begin')
    await lock.query('select from connection where id = $1 for update', [connection.id])
    const loading = operatorHere(command, { DATABASE_URL: login.href })
    await operatorWaits(db, 0.5)
    await lock.query('commit')
    const { code, stderr } = await loading
    t.equal(code, 0, stderr)
  }
  t.equal((await verifyRowCounts(db)).rows, 2)
})

t.test('40P01: the import repeats its statements, and reads the input once', async (t) => {
  const connection = await newConnection()
  const type = 'portfolio-transactions'
  await run(type, connection, [1, 2, 3].map((id) => portfolioLine(id)).join('\n'))
  // PostgreSQL cancels the session that closes the circle: the import.
  const pool = openPool(t, url, { max: 1, options: '-c deadlock_timeout=20ms' })
  const [first, other] = [await openClient(t, url), await openClient(t, url)]
  const lock = 'select from portfolio_transaction where connection_id = $1 and transaction_id = $2'
  for (const [client, row] of [
    [first, 1],
    [other, 2],
  ] as const) {
    await client.query(`begin; set local deadlock_timeout = '1h'`)
    await client.query(`${lock} for update`, [connection.id, uuid(row)])
  }
  const corrected = [1, 2].map((id) => portfolioLine(id, '"description":"by import"')).join('\n')
  const importing = importRows(pool, {
    type,
    connectionId: connection.id,
    sources: [{ name: 'rows', chunks: chunksOf(`${corrected}\n${portfolioLine(4)}`) }],
  })
  const waiting = (sessions: number) =>
    until(`${sessions} sessions wait`, async () => {
      const { rows } = await sql`select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`.execute(db)
      return rows.length === sessions
    })
  // The import has locked the connection, and waits for row 1.
  await waiting(1)
  const updating = other.query(
    `update portfolio_transaction set description = 'by SQL'
     where connection_id = $1 and transaction_id = $2`,
    [connection.id, uuid(3)],
  )
  await waiting(2)
  await first.query('commit')
  await updating
  await other.query('commit')
  t.match((await importing).counts, { read: 3, inserted: 1, updated: 2, unchanged: 0 })
  // A session counts at its next statement, or after 10 seconds.
  await pool.query('select pg_stat_force_next_flush()')
  await until('a deadlock is counted', async () => {
    const { rows } = await sql<{ deadlocks: string }>`
      select deadlocks from pg_stat_database where datname = current_database()`.execute(db)
    // On a busy machine, the import may close the circle again before the other session runs.
    return Number(rows[0]?.deadlocks) > 0
  })
  const rows = await db
    .selectFrom('portfolio_transaction')
    .where('connection_id', '=', connection.id)
    .select(['description'])
    .orderBy('transaction_id')
    .execute()
  t.same(
    rows.map(({ description }) => description),
    ['by import', 'by import', 'by SQL', null],
  )
  t.same((await verifyRowCounts(db)).differences, [])
})

t.test('another error: nothing is repeated', async (t) => {
  const connection = await newConnection()
  const type = 'account-transactions'
  await db.deleteFrom('connection').where('id', '=', connection.id).execute()
  await t.rejects(run(type, connection, accountLine(1)), /does not exist any more/)
})

t.test('a slow database', async (t) => {
  const CHUNK_ROWS = 20
  const CHUNKS = 120
  const description = `"description":"${'x'.repeat(9_000)}"`

  t.test('Stalled database: reading of the file stops, then resumes', async (t) => {
    const { url, db, newConnection } = await prepareImport(t)
    const { id } = await newConnection()
    const clients: Socket[] = []
    const through = await startTcpProxy(t, url, (client) => {
      clients.push(client)
      forward(client, url)
    })
    const pool = openPool(t, through.href, { max: 1 })
    let chunks = 0
    async function* source() {
      for (; chunks < CHUNKS; chunks += 1) {
        if (chunks === 10) for (const client of clients) client.pause()
        const ids = Array.from({ length: CHUNK_ROWS }, (_, index) => chunks * CHUNK_ROWS + index)
        yield Buffer.from(`${ids.map((row) => portfolioLine(row, description)).join('\n')}\n`)
      }
    }
    const sources = [{ name: 'rows', chunks: source() }]
    const done = importRows(pool, { type: 'portfolio-transactions', connectionId: id, sources })
    await until('the proxy is paused', () => chunks > 10)
    // Without a limit, it would read all chunks during these statements.
    for (let statement = 0; statement < 500; statement += 1) await sql`select 1`.execute(db)
    // Socket buffers take a few megabytes; a chunk has 180 kilobytes.
    t.ok(chunks < CHUNKS / 2, `${chunks} of ${CHUNKS} chunks read`)
    for (const client of clients) client.resume()
    t.match((await done).counts, { inserted: CHUNKS * CHUNK_ROWS })
  })
})
