import { globSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import type pg from 'pg'
import t, { type Test } from 'tap'
import { catalogOf } from '../../src/operator/catalog.ts'
import { createDatabase, openClient } from '../support/database.ts'
import { portfolioLine } from '../support/importing.ts'
import { openAsOwner } from '../support/logins.ts'
import { catalogOfNewDatabase } from '../support/new-schema.ts'
import { operatorHere } from '../support/operator-process.ts'
import { commonFields } from '../support/released/compare.ts'
import type { Recorded } from '../support/released/requests.ts'
import { startService } from '../support/service.ts'
import { until } from '../support/until.ts'
import { withLengths } from '../support/with-lengths.ts'

const folder = join(import.meta.dirname, '../support/released')
const read = async (file: string) => gunzipSync(await readFile(join(folder, file))).toString()

/** Releases whose database is recorded. */
const releases = globSync('*.sql.gz', { cwd: folder }).map((file) => file.replace('.sql.gz', ''))

/** Restores the database that a release filled (README.md there). */
async function restoreRelease(
  t: Test,
  version: string,
): Promise<{ url: string; client: pg.Client }> {
  const { url } = await createDatabase(t, 'template0')
  const client = await openClient(t, url)
  await client.query(await read(`${version}.sql.gz`))
  // The dump sets search_path and more for its session.
  await client.query('discard all')
  return { url, client }
}

/** What a transaction of a writer locks before its rows. `$1` is its connection. */
const ORDERS = [
  // As the refresh.
  'select from connection where id = $1 for no key update',
  // As "Locks" in docs/writing.md says.
  `lock table connection, portfolio_transaction, account_transaction, assets_transfer_order
      in row exclusive mode;
    select from connection where id = $1 for no key update`,
]

for (const version of releases)
  t.test(
    `Database of ${version}: after \`migrate\`, each response has the same fields`,
    async (t) => {
      const { url, client } = await restoreRelease(t, version)
      const versions = async () =>
        (
          await client.query(
            'select id, data_version, changed_at::text from connection order by id',
          )
        ).rows
      const before = await versions()
      const { code, stderr } = await operatorHere(['migrate'], { DATABASE_URL: url })
      t.equal(code, 0, stderr)
      t.same(await versions(), before)
      t.match(await operatorHere(['verify'], { DATABASE_URL: url }), { code: 0 })
      t.same(await catalogOf(openAsOwner(t, url)), await catalogOfNewDatabase(t))

      const service = await startService(t, { databaseUrl: url })
      const recorded: Recorded[] = JSON.parse(await read(`${version}.json.gz`))
      const issued: Recorded[] = []
      for (const { path, token, headers = {}, status, body } of recorded) {
        const response = await service.get(path, { token, headers })
        // Cursors of 1.0.0 have no time of their version.
        const isOfCursor = version === '1.0.0' && /since=(?!start)/.test(path)
        t.equal(response.status, isOfCursor ? 410 : status, path)
        if (response.status === 200) {
          const { now, recorded } = commonFields(response.text, body, headers.accept)
          t.strictSame(now, recorded, path)
        } else t.equal(response.json().code, isOfCursor ? 'cursor_expired' : JSON.parse(body).code)
        if (/since=/.test(path) && status === 200) issued.push({ path, token, status, body })
      }
      t.equal(issued.length, 8)

      // An import after the upgrade: the copy of each client of 1.0.0 is read again, and the others go on.
      const [{ id } = { id: '' }] = (
        await client.query("select id from connection where label = 'A dozen rows'")
      ).rows
      const file = join(t.testdir({ 'rows.ndjson': portfolioLine(1) }), 'rows.ndjson')
      const imported = await operatorHere(
        ['import', 'portfolio-transactions', '--connection', id, file],
        { DATABASE_URL: url },
      )
      t.equal(imported.code, 0, imported.stderr)
      for (const { path, token, body } of issued) {
        const list = path.slice(0, path.indexOf('?'))
        const since = `${list}?since=${JSON.parse(body).nextCursor}`
        const { status, json } = await service.get(since, { token })
        if (version === '1.0.0')
          t.match([status, json()], withLengths([410, { code: 'cursor_expired' }]))
        else t.equal(status, 200, since)
      }
    },
  )

t.test('Recorded response: a new field is no difference, another value is one', async (t) => {
  const bodies = {
    '': [
      '{"items":[{"a":1.50}],"totalItems":1}',
      '{"items":[{"b":2,"a":1.50}],"new":0,"totalItems":1}',
    ],
    'application/x-ndjson': ['{"a":1.50}\n', '{"a":1.50,"b":null}\n'],
    'text/csv': ['a\n1.50\n', 'a,b\n1.50,2\n'],
  }
  for (const [mediaType, [recorded = '', later = '']] of Object.entries(bodies)) {
    const same = commonFields(later, recorded, mediaType)
    t.strictSame(same.now, same.recorded, mediaType)
    for (const wrong of [later.replace('1.50', '1.5'), later.replace('a', 'c')]) {
      const other = commonFields(wrong, recorded, mediaType)
      t.strictNotSame(other.now, other.recorded, wrong)
    }
  }
})

t.test(
  'Database of 1.0.0 under load: `migrate` keeps each row, and no statement fails',
  async (t) => {
    const { url, client } = await restoreRelease(t, '1.0.0')
    const connections = (await client.query('select id, app_id from connection order by id')).rows
    // Without nulls: a later migration may add a column.
    const contentOf = async (session: pg.Client, id: string): Promise<string> => {
      const { rows } = await session.query(
        `select (select (app_id, token_hash, label, data_version, changed_at, portfolio_transactions)::text
          from connection where id = $1) as connection,
        (select jsonb_agg(jsonb_strip_nulls(to_jsonb(t)) order by transaction_id)
          from portfolio_transaction t where connection_id = $1)::text as portfolio,
        (select jsonb_agg(jsonb_strip_nulls(to_jsonb(t)) order by movement_id)
          from account_transaction t where connection_id = $1)::text as account,
        (select jsonb_agg(jsonb_strip_nulls(to_jsonb(t)) order by id)
          from assets_transfer_order t where connection_id = $1)::text as orders,
        (select jsonb_agg(jsonb_strip_nulls(to_jsonb(t)) order by effective_day)
          from portfolio_transaction_day t where connection_id = $1)::text as days,
        (select jsonb_agg(jsonb_strip_nulls(to_jsonb(t)) order by change_number)
          from portfolio_transaction_removal t where connection_id = $1)::text as removals`,
        [id],
      )
      return JSON.stringify(rows)
    }
    const before = new Map<string, string>()
    for (const { id } of connections) before.set(id, await contentOf(client, id))

    let loading = true
    let [reads, writes] = [0, 0]
    const readers = [1, 2, 3].map(async () => {
      const session = await openClient(t, url)
      while (loading)
        for (const { id } of connections) {
          t.equal(await contentOf(session, id), before.get(id), id)
          reads += 1
        }
    })
    const writers = [1, 2, 3].map(async (number) => {
      const session = await openClient(t, url)
      const token = `written under load ${number}`
      const { rows } = await session.query(
        `insert into connection (id, app_id, token_hash)
        select ('x' || encode(substring(sha256($1) from 1 for 8), 'hex'))::bit(64)::bigint, $2, sha256($1)
        returning id`,
        [Buffer.from(token), connections[0]?.app_id],
      )
      const { id } = rows[0]
      while (loading) {
        await session.query(`begin; ${ORDERS[number % ORDERS.length]}`.replaceAll('$1', id))
        await session.query(
          `insert into portfolio_transaction (connection_id, transaction_id, portfolio_id, type, operation_date_day)
            select $1, gen_random_uuid(), gen_random_uuid(), 'BUY', '2025-01-01'::date + n
            from generate_series(1, 40) n`,
          [id],
        )
        await session.query(
          'update portfolio_transaction set amount = 1 where connection_id = $1',
          [id],
        )
        await session.query(
          `delete from portfolio_transaction where connection_id = $1 and effective_day < '2025-01-20'`,
          [id],
        )
        await session.query('commit')
        writes += 3
      }
    })
    const load = Promise.all([...readers, ...writers])
    load.catch(() => {})
    await until('the load runs', () => reads > 20 && writes > 20)
    const migrated = await operatorHere(['migrate'], { DATABASE_URL: url })
    t.equal(migrated.code, 0, migrated.stderr)
    const [readsThen, writesThen] = [reads, writes]
    await until('the load goes on', () => reads > readsThen + 20 && writes > writesThen + 20)
    loading = false
    await load
    for (const { id } of connections) t.equal(await contentOf(client, id), before.get(id), id)
    const verified = await operatorHere(['verify'], { DATABASE_URL: url })
    t.equal(verified.code, 0, verified.stdout)
    t.comment(`${reads} reads, ${writes} writes`)
  },
)
