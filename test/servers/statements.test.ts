import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { openPool } from '../support/database.ts'
import { codeBlocks, fillIn } from '../support/documented-commands.ts'
import { addSampleData } from '../support/golden-responses.ts'
import { openAsOwner } from '../support/logins.ts'
import { operatorHere } from '../support/operator-process.ts'
import { libpqVariables, runShell } from '../support/processes/shell.ts'
import {
  firstValue,
  migrate,
  newDirectory,
  startDebianPostgres,
} from '../support/servers/debian-postgres.ts'
import { databaseUrl } from '../support/template.ts'
import { until } from '../support/until.ts'

/** Documented statements and lines of configuration files, on a server of their own. */
const server = await startDebianPostgres(t)
await firstValue(server.url, 'create database investments')
const url = databaseUrl(server.url, 'investments')
const login = await migrate(url)
await addSampleData(openAsOwner(t, url), 300)
const pool = openPool(t, url)

t.test('pg_hba.conf: the role of the service reaches its database only', async (t) => {
  const lines = codeBlocks('Roles and database').find((block) => block.startsWith('host '))
  const [allowed = '', rejected = ''] = String(lines).split('\n')
  const file = join(server.data, 'pg_hba.conf')
  const before = await readFile(file, 'utf8')
  const use = async (...top: string[]) => {
    await writeFile(file, [...top, before].join('\n'))
    const { rows } = await pool.query('select error from pg_hba_file_rules where error is not null')
    t.same(rows, [])
    await firstValue(server.url, 'select pg_reload_conf()')
  }
  const other = databaseUrl(login, 'postgres')
  const isRejected = (url: string) =>
    firstValue(url, 'select').then(
      () => false,
      ({ code }) => code === '28000',
    )
  t.notOk(await isRejected(other), 'PUBLIC may connect to every database')
  await use(allowed, rejected)
  await until('connections from another address are rejected', () => isRejected(login))
  await use(fillIn(allowed, { '10.0.0.0/24': '127.0.0.1/32' }), rejected)
  await until('this address is allowed', async () => !(await isRejected(login)))
  t.ok(await isRejected(other))
  t.notOk(await isRejected(server.url), 'other roles')
})

t.test('Statements for each week: sizes, dead rows and age of the database', async (t) => {
  const [statements = ''] = codeBlocks('Check once a week')
  const run = async () => (await pool.query(statements)) as unknown as { rows: object[] }[]
  // A session reports its statistics when it ends, or some seconds later.
  await until('the rows are counted', async () => (await ownRow(run()))?.n_live_tup !== '0')
  const [tables, databases] = await run()
  t.equal(tables?.rows.length, 12, 'all tables')
  t.match(await ownRow(run()), {
    size: /^\d+ [kM]B$/,
    n_live_tup: /^[1-9]\d*$/,
    n_dead_tup: /^\d+$/,
    percent_from_memory: /^\d+\.\d$/,
  })
  t.match(
    databases?.rows.find((row) => Reflect.get(row, 'datname') === 'investments'),
    { transactions_since_freeze: Number },
  )
})

t.test('Settings for 100 million rows: both transaction tables have them', async (t) => {
  const statements = (await readFile('docs/scale.md', 'utf8')).match(/^alter table .*;$/gm)
  await pool.query(String(statements?.join('\n')))
  const { rows } = await pool.query(
    'select relname from pg_class where reloptions @> $1 order by relname',
    [['autovacuum_vacuum_insert_scale_factor=0.01', 'autovacuum_analyze_scale_factor=0.01']],
  )
  t.same(
    rows.map(({ relname }) => relname),
    ['account_transaction', 'portfolio_transaction'],
  )
})

t.test('pg_restore --data-only: row counts are wrong without --disable-triggers', async (t) => {
  const { folder } = await newDirectory(t)
  const environment = libpqVariables(server.url)
  const dump = `pg_dump --data-only --format custom --exclude-table 'kysely_*' --file ${folder}/dump investments`
  await runShell(t, dump, environment)
  const verify = async (name: string, flags: string) => {
    await firstValue(server.url, `create database ${name}`)
    const DATABASE_URL = databaseUrl(server.url, name)
    await migrate(DATABASE_URL)
    const restore = `pg_restore --data-only ${flags} --dbname ${name} ${folder}/dump`
    await runShell(t, `${restore} || true`, environment)
    return await operatorHere(['verify'], { DATABASE_URL })
  }
  t.match(await verify('disabled', '--disable-triggers'), { code: 0 })
  t.match(await verify('counted', ''), { code: 1 })
})

interface TableRow {
  relname: string
  n_live_tup: string
}

async function ownRow(results: Promise<{ rows: object[] }[]>): Promise<TableRow | undefined> {
  const [tables] = await results
  const rows = (tables?.rows ?? []) as TableRow[]
  return rows.find(({ relname }) => relname === 'portfolio_transaction')
}
