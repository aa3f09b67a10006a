import { randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import t from 'tap'
import { openClient } from '../support/database.ts'
import { accountLine, portfolioLine, prepareImport } from '../support/importing.ts'
import { operatorHere, operatorWaits } from '../support/operator-process.ts'
import { addPortfolioTransactions, listNames, lists } from '../support/rows.ts'
import { setReplica } from '../support/state.ts'
import { databaseUrl, onServer } from '../support/template.ts'

const { url, db, run, newConnection, rowCounts } = await prepareImport(t)
const verify = (...flags: string[]) => operatorHere(['verify', ...flags], { DATABASE_URL: url })

t.test('Correct row counts: exit code 0', async (t) => {
  const connection = await newConnection()
  await run('portfolio-transactions', connection, portfolioLine(1))
  t.match(await verify(), {
    code: 0,
    stdout: 'The row counts and change numbers agree with 1 row of 1 connection.\n',
  })
  await newConnection()
  await run('portfolio-transactions', connection, portfolioLine(2))
  await run('account-transactions', connection, accountLine(1))
  t.match(await verify(), {
    code: 0,
    stdout: 'The row counts and change numbers agree with 3 rows of 2 connections.\n',
  })
  t.same((await verify('--json')).json(), {
    connections: 2,
    rows: 3,
    differences: [],
    numbers: [],
    schema: { missing: [], unexpected: [] },
    collation: [],
  })
})

t.test(
  'other collation than at the creation of the indexes: the statements that mend it',
  async (t) => {
    const name = `collation_${randomBytes(6).toString('hex')}`
    const server = new URL(url)
    server.pathname = '/postgres'
    // Without a version, as in the C locale, there is nothing to compare.
    await onServer(
      server.href,
      `create database ${name} template template0 encoding 'UTF8' locale 'C' locale_provider icu icu_locale 'und'`,
    )
    t.teardown(() => onServer(server.href, `drop database ${name} (force)`))
    const DATABASE_URL = databaseUrl(server.href, name)
    const verifyThere = (...flags: string[]) => operatorHere(['verify', ...flags], { DATABASE_URL })
    t.match(await operatorHere(['migrate'], { DATABASE_URL }), { code: 0 })
    t.match(await verifyThere(), { code: 0 })

    await onServer(
      DATABASE_URL,
      `update pg_database set datcollversion = 'older' where datname = '${name}'`,
    )
    const { code, stdout } = await verifyThere()
    t.equal(code, 1)
    for (const index of ['app_name_key', 'app_client_id_key', 'connection_external_id'])
      t.match(stdout, `\n  reindex index concurrently ${index};\n`)
    t.match(stdout, new RegExp(`\n  alter database ${name} refresh collation version;\n$`))

    const { collation } = (await verifyThere('--json')).json()
    for (const statement of collation) await onServer(DATABASE_URL, statement)
    t.match(await verifyThere(), { code: 0 })
  },
)

t.test(
  'settings of the login: they neither end a long command nor change its result',
  async (t) => {
    const login = new URL(url)
    const { rows } = await sql<{ has: boolean }>`
    select current_setting('transaction_timeout', true) is not null as has`.execute(db)
    const timeouts = ['statement_timeout', ...(rows[0]?.has ? ['transaction_timeout'] : [])]
    const settings = [
      ...timeouts.map((name) => `${name}=1s`),
      'quote_all_identifiers=on',
      'standard_conforming_strings=off',
      'search_path=pg_catalog',
    ]
    login.searchParams.set('options', settings.map((setting) => `-c ${setting}`).join(' '))
    const environment = { DATABASE_URL: login.href }
    const lock = await openClient(t, url)
    const waiting = async (args: string[], table: string) => {
      await lock.query(`begin; lock ${table}`)
      const done = operatorHere(args, environment)
      await operatorWaits(db, 1.2)
      await lock.query('commit')
      return await done
    }
    const counted = 'The row counts and change numbers agree with 3 rows of 2 connections.\n'
    t.match(await waiting(['verify'], 'portfolio_transaction'), { code: 0, stdout: counted })
    const { id } = await newConnection()
    const folder = t.testdir({
      'rows.ndjson': portfolioLine(1),
      'refresh.ndjson': `{"connection":"${id}"}`,
    })
    const load = ['import', 'portfolio-transactions', '--connection', id, `${folder}/rows.ndjson`]
    t.match(await waiting(load, 'connection'), { code: 0, stdout: /^Read 1 row: 1 inserted/ })
    t.match(await waiting(['refresh', `${folder}/refresh.ndjson`], 'connection'), { code: 0 })
    t.match(await waiting(['connection', 'delete', id], 'connection'), { code: 0 })
  },
)

t.test('Concurrent writes: row counts agree in every snapshot', async (t) => {
  const connections = await Promise.all([1, 2, 3].map(() => newConnection()))
  let writing = true
  const imports = connections.map(async (connection, index) => {
    for (let round = 0; round < 6; round += 1) {
      const lines = Array.from({ length: 50 }, (_, row) =>
        portfolioLine(round * 20 + row, `"titles":${index},"amount":${round}`),
      )
      await run('portfolio-transactions', connection, lines.join('\n'))
    }
  })
  const written = Promise.all(imports).finally(() => {
    writing = false
  })
  do {
    const { differences, numbers } = (await verify('--json')).json()
    t.same({ differences, numbers }, { differences: [], numbers: [] })
  } while (writing)
  await written
})

t.test('Wrong row counts: each is listed, exit code 1, nothing is changed', async (t) => {
  const { id } = await newConnection()
  const other = await newConnection()
  const day = (line: string, to: string) => line.replace('2024-02-29', to)
  const lines = [1, 2].map((row) => day(portfolioLine(row), '0099-03-01'))
  await run('portfolio-transactions', { id }, [portfolioLine(3), ...lines].join('\n'))
  await run('account-transactions', other, accountLine(1))
  await sql`update connection set portfolio_transactions = 7 where id = ${id}`.execute(db)
  await sql`delete from portfolio_transaction_month
    where connection_id = ${id} and first_day = '0099-03-01'`.execute(db)
  await sql`update portfolio_transaction_month set row_count = 4
    where connection_id = ${id} and first_day = '2024-02-01'`.execute(db)
  await sql`insert into account_transaction_month
    values (${other.id}, '2030-11-01', 2), (${other.id}, '2030-12-01', 1)`.execute(db)
  const { code, json } = await verify('--json')
  t.equal(code, 1)
  const portfolio = { connectionId: id, table: 'portfolio_transaction' }
  const account = { connectionId: other.id, table: 'account_transaction' }
  const expected = [
    { ...portfolio, period: null, booked: 7, counted: 3 },
    { ...portfolio, period: '0099-03', booked: 0, counted: 2 },
    { ...portfolio, period: '2024-02', booked: 4, counted: 1 },
    { ...account, period: '2030-11', booked: 2, counted: 0 },
    { ...account, period: '2030-12', booked: 1, counted: 0 },
  ]
  t.same(json().differences, expected)
  const { stdout } = await verify()
  t.match(stdout, /^The row counts are wrong:\n/)
  t.match(stdout, new RegExp(`${id} +portfolio_transaction +0099-03 +0 +2\n`))
  t.match(stdout, new RegExp(`${id} +portfolio_transaction +all +7 +3\n`))
  t.same((await verify('--json')).json().differences, expected)
})

for (const list of listNames) {
  const { table } = lists[list]
  t.test(`Wrong change numbers, ${list}: each problem is listed, exit code 1`, async (t) => {
    const { id } = await newConnection()
    const line = list === 'portfolio' ? portfolioLine : accountLine
    const lines = [1, 2, 3, 4, 5, 6, 7].map((row) => line(row))
    await run(`${list}-transactions`, { id }, lines.join('\n'))
    const key = sql.ref(lists[list].idColumn)
    const rows = sql.table(table)
    const number = (row: number, value: string) => sql`
      update ${rows} set change_number = ${sql.raw(value)}
      where connection_id = ${id} and change_number & 1023 = ${row}`
    await db.transaction().execute(async (transaction) => {
      await setReplica(transaction)
      await number(1, '0').execute(transaction)
      await number(2, '(9::bigint << 31) + 2').execute(transaction)
      await number(3, 'change_number + 2').execute(transaction)
      await sql`insert into ${sql.table(`${table}_removal`)} (connection_id, change_number, ${key})
        select connection_id, change_number + 1000, ${key} from ${rows}
        where connection_id = ${id} and change_number & 1023 in (4, 6)`.execute(transaction)
    })
    const { code, json } = await verify('--json')
    t.equal(code, 1)
    const wrong = { connectionId: id, table }
    t.same(json().numbers, [
      { ...wrong, problem: 'doubled', rows: 2 },
      { ...wrong, problem: 'of no version', rows: 2 },
      { ...wrong, problem: 'older than removal', rows: 2 },
    ])
    t.match(
      (await verify()).stdout,
      new RegExp(`Change numbers are wrong:\n(.*\n)+${id} +${table} +doubled +2\n`),
    )
    // A statement that writes the rows gives them new numbers.
    await sql`update ${rows} set amount = amount where connection_id = ${id}`.execute(db)
    t.same((await verify('--json')).json().numbers, [])
  })
}

t.test('--repair: wrong row counts are mended, and the API shows a new version', async (t) => {
  const connection = await newConnection()
  const { id } = connection
  await run('portfolio-transactions', connection, `${portfolioLine(1)}\n${portfolioLine(2)}`)
  await run('account-transactions', connection, accountLine(1))
  await sql`update connection set portfolio_transactions = 7, account_transactions = 0
    where id = ${id}`.execute(db)
  await sql`update portfolio_transaction_month set row_count = 5 where connection_id = ${id}`.execute(
    db,
  )
  await sql`delete from account_transaction_month where connection_id = ${id}`.execute(db)
  const before = await rowCounts(connection)
  t.match(await verify(), { code: 1 })
  t.match(await verify('--repair'), {
    code: 0,
    stdout: /^The row counts and change numbers agree/,
    stderr: /^The rows of \d connections? were counted again\.\n$/,
  })
  const after = await rowCounts(connection)
  t.match(after, { portfolio: 2, account: 1 })
  t.ok(after.version > before.version)
})

t.test('--repair: counts the rows of a writer that commits while it runs', async (t) => {
  const connection = await newConnection()
  await run('portfolio-transactions', connection, portfolioLine(1))
  await sql`update connection set portfolio_transactions = 7 where id = ${connection.id}`.execute(
    db,
  )
  const repairing = await db.transaction().execute(async (transaction) => {
    // Its month has no rows before.
    await addPortfolioTransactions(transaction, connection, {
      operation_date_day: '2031-05-06',
    })
    const started = verify('--repair')
    await operatorWaits(db)
    return { started }
  })
  t.match(await repairing.started, { code: 0 })
  t.match(await rowCounts(connection), { portfolio: 2 })
  t.match(await verify(), { code: 0 })
})
