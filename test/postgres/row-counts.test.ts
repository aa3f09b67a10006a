import { sql } from 'kysely'
import type pg from 'pg'
import t from 'tap'
import { createDatabase } from '../support/database.ts'
import { openAsOwner } from '../support/logins.ts'
import { fc, runs } from '../support/random.ts'
import { addCaller, addPortfolioTransactions } from '../support/rows.ts'
import { startService } from '../support/service.ts'
import { isCitus } from '../support/template.ts'
import { history, type Step, wideWrites } from './row-counts/history.ts'
import { type Contents, readContents, wrongEntries } from './row-counts/recount.ts'
import { addConnections } from './row-counts/statements.ts'
import { openWriters, play } from './row-counts/writers.ts'

/** Duplicate row, missing connection, failed transaction, deadlock, missing savepoint. */
const EXPECTED = /^(23505|23503|25P02|40P01|3B001)$/
/** Statements that Citus rejects; failed COPY. */
const EXPECTED_OF_CITUS = /^(0A000|XX000)$/
const isExpected = (code: string) =>
  EXPECTED.test(code) || (isCitus && EXPECTED_OF_CITUS.test(code))
/** Each write to Citus takes several times as long. */
const numRuns = runs(isCitus ? 12 : 60)

t.test('any writes, rollbacks and concurrent writes: row counts equal a recount', async (t) => {
  const writers = await openWriters(t, (await createDatabase(t)).url, 4)
  const [reader] = writers as [pg.Client]
  const failed = new Set<string>()
  await fc.assert(
    fc.asyncProperty(history, async (steps) => {
      await reset(reader)
      const contents = new Map<string, string>()
      let before = await readContents(reader)
      for (const step of steps) {
        const { touched, failures } = await play(writers, step)
        for (const code of failures) failed.add(code)
        const wrong = await wrongEntries(reader)
        if (wrong.length > 0) throw new Error(JSON.stringify(wrong))
        const after = await readContents(reader)
        compare(before, after, touched)
        checkVersions(contents, after)
        before = after
      }
    }),
    { numRuns, endOnFailure: true },
  )
  t.same(
    [...failed].filter((code) => !isExpected(code)),
    [],
    'no other error',
  )
})

async function reset(client: pg.Client): Promise<void> {
  await client.query('delete from app')
  await client.query("insert into app (name) values ('writer')")
  await client.query(addConnections.sql)
}

/** A version changes with its rows, and only after a write to the connection. */
function compare(
  before: Map<string, Contents>,
  after: Map<string, Contents>,
  touched: Set<string>,
) {
  for (const [id, { version, digest }] of after) {
    const old = before.get(id)
    if (old === undefined) continue
    if (digest !== old.digest && version === old.version)
      throw new Error(`${id}: ${version} did not change`)
    if (!touched.has(id) && version !== old.version) throw new Error(`${id}: ${version} changed`)
  }
}

/** One version never has two contents. */
function checkVersions(contents: Map<string, string>, after: Map<string, Contents>) {
  for (const [id, { version, digest }] of after) {
    const name = `${id} in ${version}`
    const known = contents.get(name) ?? digest
    if (known !== digest) throw new Error(`${name} has other rows than before`)
    contents.set(name, digest)
  }
}

t.test('23514: a row count of zero', async (t) => {
  const { url } = await createDatabase(t)
  const db = openAsOwner(t, url)
  const { connection } = await addCaller(db)
  for (const noun of ['portfolio_transaction', 'account_transaction']) {
    const table = sql.table(`${noun}_month`)
    for (const count of [0, -1]) {
      const insert = sql`insert into ${table} values (${connection.id}, '2025-01-01', ${count})`
      await t.rejects(insert.execute(db), { code: '23514' }, `${noun}_month of ${count}`)
    }
  }
})

t.test('statements over many connections: no deadlock', async (t) => {
  const writers = await openWriters(t, (await createDatabase(t)).url, 4)
  const [reader] = writers as [pg.Client]
  await reset(reader)
  const check = async (step: Step) => {
    const { failures } = await play(writers, step)
    // Citus locks the shards of a statement at the same time, and cancels a statement of a deadlock.
    const unexpected = failures.filter((code) => !(isCitus && code === '40P01'))
    if (unexpected.length > 0) throw new Error(unexpected.join())
  }
  await fc.assert(fc.asyncProperty(wideWrites, check), { numRuns, endOnFailure: true })
  t.same(await wrongEntries(reader), [])
})

t.test('200: pages and totals match while a table is truncated', async (t) => {
  // A read waits for the lock of TRUNCATE for a fifth of it.
  const patient = { STATEMENT_TIMEOUT_MS: '300000' }
  const { get, db } = await startService(t, { environment: patient })
  const { token, connection } = await addCaller(db)
  if (isCitus) {
    await addPortfolioTransactions(db, connection, {})
    await t.rejects(sql`truncate portfolio_transaction`.execute(db), { code: '0A000' })
    t.equal((await get(connection.portfolio, { token })).json().totalItems, 1)
    return
  }
  const rows = Array.from({ length: 50 }, () => ({}))
  const bad: string[] = []
  let writing = true
  const read = async () => {
    while (writing) {
      const { status, text } = await get(`${connection.portfolio}?from=2000-01-01`, { token })
      const page = JSON.parse(text)
      if (status !== 200 || page.items.length !== page.totalItems) bad.push(text)
    }
  }
  const readers = Array.from({ length: 4 }, read)
  try {
    for (let round = 0; round < runs(30); round += 1) {
      await addPortfolioTransactions(db, connection, ...rows)
      await sql`truncate portfolio_transaction`.execute(db)
    }
  } finally {
    writing = false
  }
  await Promise.all(readers)
  t.same(bad, [])
})
