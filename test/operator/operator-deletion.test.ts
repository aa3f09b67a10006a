import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { sql } from 'kysely'
import t, { type Test } from 'tap'
import { describeRows } from '../../src/operator/deletion.ts'
import { databaseName } from '../../src/postgres/server-urls.ts'
import { connectionKey, tokenHash } from '../../src/postgres/tokens.ts'
import { openClient } from '../support/database.ts'
import { noRows } from '../support/no-rows.ts'
import { operator, operatorHere, operatorWaits } from '../support/operator-process.ts'
import {
  addAccountTransactions,
  addApp,
  addConnection,
  addPortfolioTransactions,
  addresses,
  addToken,
  addTransferOrders,
  type TestConnection,
} from '../support/rows.ts'
import { startService } from '../support/service.ts'

const service = await startService(t)
const { db, databaseUrl: DATABASE_URL } = service
const folder = t.testdir()
/** Path of a new file with this token. */
const tokenFile = (token: string) => {
  const path = join(folder, token)
  writeFileSync(path, token)
  return path
}
const call = (...args: string[]) => operatorHere(args, { DATABASE_URL })

/** Adds an app, a token and a connection: 2 portfolio and 1 account transaction, 1 order. */
async function addCustomer(name: string, connectionToken?: string) {
  const appId = await addApp(db, { name })
  const token = await addToken(db, appId)
  const connection = await addConnection(db, appId, connectionToken)
  await addPortfolioTransactions(db, connection, {}, { operation_date_day: '2025-02-01' })
  await addAccountTransactions(db, connection, {})
  await addTransferOrders(db, connection, {})
  return { appId, token, connection }
}

type Customer = Awaited<ReturnType<typeof addCustomer>>

/** Numbers of rows of a customer. A later release may have more lists. */
const ROWS = { ...noRows, portfolioTransactions: 2, accountTransactions: 1, transferOrders: 1 }
const IN_WORDS = describeRows(ROWS)

t.test('rows in words: every list', async (t) => {
  t.match(IN_WORDS, /^2 portfolio transactions, 1 account transaction(,| and) 1 transfer order/)
})

/** Status of each endpoint for the customer's app. */
async function statuses({ token, connection }: Pick<Customer, 'token' | 'connection'>) {
  const { portfolio, account, orders } = connection
  const responses = [portfolio, account, orders].map((path) => service.get(path, { token }))
  return (await Promise.all(responses)).map(({ status }) => status)
}

async function isWhole(t: Test, customer: Customer, words: string) {
  t.same(await statuses(customer), [200, 200, 200], words)
  const { portfolio, account, orders } = customer.connection
  const ask = async (path: string) => (await service.get(path, customer)).json()
  t.equal((await ask(portfolio)).items.length, 2, words)
  t.equal((await ask(portfolio)).totalItems, 2, words)
  t.equal((await ask(account)).items.length, 1, words)
  t.equal((await ask(orders)).length, 1, words)
}

/** Counts the rows and row counts of a connection, in all tables that refer to it. */
async function remains(t: Test, { id }: TestConnection): Promise<number> {
  const { rows: tables } = await sql<{ name: string }>`
    select conrelid::regclass::text as name from pg_constraint
    where contype = 'f' and confrelid = 'connection'::regclass and conparentid = 0`.execute(db)
  t.ok(tables.length > 0)
  const counts = tables.map(({ name }) =>
    sql<{ count: number }>`
      select count(*)::integer as count from ${sql.table(name)} where connection_id = ${id}`.execute(
      db,
    ),
  )
  return (await Promise.all(counts)).reduce((sum, { rows }) => sum + (rows[0]?.count ?? 0), 0)
}

async function rowCountsAgree(t: Test) {
  t.match(await call('verify'), { code: 0, stdout: /^The row counts and change numbers agree/ })
}

t.test('404: deleted connection', async (t) => {
  const customer = await addCustomer('erasing', 'erased')
  const other = await addCustomer('neighbour', 'untouched')
  const sibling = await addConnection(db, customer.appId)
  await addPortfolioTransactions(db, sibling, {})
  t.ok((await remains(t, customer.connection)) > 4)

  const { id } = customer.connection
  const remove = ['connection', 'delete', id]
  t.match(await call(...remove, '--app', 'neighbour'), {
    code: 1,
    stderr: /^The app neighbour has no connection /,
  })
  const done = await call(...remove, '--app', 'erasing')
  t.match(done, { code: 0, stdout: `Connection ${id} of erasing is deleted with ${IN_WORDS}.\n` })
  t.same(await statuses(customer), [404, 404, 404])
  t.equal(await remains(t, customer.connection), 0)
  await isWhole(t, other, "another app's connection stays")
  t.equal((await service.get(sibling.portfolio, customer)).json().items.length, 1)

  const byId = ['connection', 'delete', sibling.id, '--app', 'erasing', '--json']
  t.same((await call(...byId)).json(), {
    id: sibling.id,
    app: 'erasing',
    label: null,
    ...noRows,
    portfolioTransactions: 1,
  })
  t.equal((await service.get(sibling.portfolio, customer)).status, 404)
  await rowCountsAgree(t)
})

t.test('New connection with the token of a deleted one: no rows, another ETag', async (t) => {
  const { appId, token, connection } = await addCustomer('again', 'again')
  const before = await service.get(connection.portfolio, { token })
  t.match(await call('connection', 'delete', connection.id), { code: 0 })
  await addConnection(db, appId, 'again')
  const headers = { 'if-none-match': String(before.headers.get('etag')) }
  const response = await service.get(connection.portfolio, { token, headers })
  t.equal(response.status, 200, 'and the tag of the old one is not its own')
  t.same(response.json().items, [])
  t.equal(response.json().totalItems, 0)
})

t.test('401: deleted app; its connections go only with --with-connections', async (t) => {
  const customer = await addCustomer('ending', 'ended')
  await addToken(db, customer.appId, { revoked_at: new Date() })
  const empty = await addConnection(db, customer.appId)
  const other = await addCustomer('going on')

  t.match(await call('app', 'delete', 'ending'), {
    code: 1,
    stdout: '',
    stderr:
      `The app ending still has 2 connections with ${IN_WORDS}. ` +
      '--with-connections deletes them, too.\n',
  })
  await isWhole(t, customer, 'after the error, all data is unchanged')

  const args = ['app', 'delete', 'ending', '--with-connections', '--json']
  t.same((await operator(args, { env: { DATABASE_URL } })).json(), {
    id: customer.appId,
    name: 'ending',
    tokens: 2,
    connections: 2,
    ...ROWS,
  })
  t.same(await statuses(customer), [401, 401, 401])
  t.same(await statuses({ token: other.token, connection: empty }), [404, 404, 404])
  t.equal((await remains(t, customer.connection)) + (await remains(t, empty)), 0)
  await isWhole(t, other, "another app's connection stays")
  await rowCountsAgree(t)
})

t.test('app delete: one sentence, with and without connections', async (t) => {
  await addCustomer('full')
  t.match(await call('app', 'delete', 'full', '--with-connections'), {
    stdout: `The app full is deleted with 1 token and 1 connection: ${IN_WORDS}.\n`,
  })
  await addToken(db, await addApp(db, { name: 'bare' }))
  t.match(await call('app', 'delete', 'bare'), {
    code: 0,
    stdout: 'The app bare is deleted with 1 token and 0 connections.\n',
  })
  t.match(await call('app', 'create', 'bare'), { code: 0 }, 'the name is free')
})

t.test('Missing app or connection: an error, and nothing is deleted', async (t) => {
  const customer = await addCustomer('there')
  const { id } = customer.connection
  await addApp(db, { name: 'elsewhere' })
  const noApp = 'There is no app no: `app list` shows all apps.'
  const listed = '`connection list --app NAME` shows those of an app.'
  const cases: [string[], string][] = [
    [['app', 'delete', 'no'], noApp],
    [['app', 'delete', 'no', '--with-connections'], noApp],
    [
      ['connection', 'delete', '999999999999999999'],
      `There is no connection 999999999999999999: ${listed}`,
    ],
    [['connection', 'delete', id, '--app', 'no'], noApp],
    [
      ['connection', 'delete', id, '--app', 'elsewhere'],
      `The app elsewhere has no connection ${id}: ${listed}`,
    ],
  ]
  for (const [args, sentence] of cases) {
    const { code, stderr, json } = await call(...args, '--json')
    t.equal(code, 1, args.join(' '))
    t.equal(stderr, `${sentence}\nThe database is ${databaseName(DATABASE_URL)}.\n`)
    t.same(json(), { error: sentence })
  }
  await isWhole(t, customer, 'nothing was deleted')
})

t.test('Failed deletion: rolled back', async (t) => {
  const customer = await addCustomer('half')
  await afterDeletion(t, ['connection', 'app'], "raise exception 'rejected'")
  t.match(await call('connection', 'delete', customer.connection.id), { code: 1 })
  await isWhole(t, customer, 'the connection')
  t.match(await call('app', 'delete', 'half', '--with-connections'), { code: 1 })
  await isWhole(t, customer, 'the app')
})

/** Runs a statement after each deleted row, until the test ends. */
async function afterDeletion(t: Test, tables: string[], statement: string): Promise<void> {
  const body = sql.lit(`begin ${statement}; return null; end`)
  await sql`create function after_deletion() returns trigger language plpgsql as ${body}`.execute(
    db,
  )
  t.teardown(() => sql`drop function if exists after_deletion cascade`.execute(db))
  await db.transaction().execute(async (transaction) => {
    // Citus otherwise rejects the triggers. PostgreSQL ignores these settings.
    await sql`set local citus.enable_unsafe_triggers = on`.execute(transaction)
    await sql`set local citus.multi_shard_modify_mode = 'sequential'`.execute(transaction)
    for (const table of tables) {
      await sql`create trigger after_deletion after delete on ${sql.table(table)}
        for each row execute function after_deletion()`.execute(transaction)
    }
  })
}

t.test('Adding to an app during its deletion: waits, then fails', async (t) => {
  const session = await openClient(t, DATABASE_URL)
  for (const [noun, verb] of [
    ['token', 'issue'],
    ['connection', 'create'],
  ] as const) {
    const appId = await addApp(db, { name: 'going' })
    await session.query('begin')
    await session.query('delete from app where id = $1', [appId])
    const added = call(noun, verb, '--app', 'going')
    await operatorWaits(db)
    await session.query('commit')
    t.match(await added, {
      code: 1,
      stdout: '',
      stderr: 'Another session deleted the parent row at the same time; nothing was changed.\n',
    })
  }
})

t.test('Deleting an app while it gets a connection: waits, then fails', async (t) => {
  const session = await openClient(t, DATABASE_URL)
  const appId = await addApp(db, { name: 'growing' })
  const token = await addToken(db, appId)
  await session.query('begin')
  const hash = tokenHash('grown')
  const values = [connectionKey(hash), appId, hash]
  await session.query('insert into connection (id, app_id, token_hash) values ($1, $2, $3)', values)
  const deleted = call('app', 'delete', 'growing')
  await operatorWaits(db)
  await session.query('commit')
  t.match(await deleted, {
    code: 1,
    stdout: '',
    stderr: /^The app growing still has 1 connection /,
  })
  t.equal((await service.get(addresses('grown').orders, { token })).status, 200)
})

t.test('Deletion during a write: waits, and deletes the new rows', async (t) => {
  const session = await openClient(t, DATABASE_URL)
  for (const name of ['app', 'connection']) {
    const customer = await addCustomer(`written ${name}`)
    const { id } = customer.connection
    await session.query('begin')
    await session.query(
      `insert into portfolio_transaction
         (connection_id, transaction_id, portfolio_id, type, value_date_day)
       values ($1, gen_random_uuid(), gen_random_uuid(), 'BUY', '2025-01-01')`,
      [id],
    )
    const deleted =
      name === 'app'
        ? call('app', 'delete', 'written app', '--with-connections', '--json')
        : call('connection', 'delete', id, '--json')
    await operatorWaits(db)
    t.same(await statuses(customer), [200, 200, 200], 'readers do not wait')
    await session.query('commit')
    t.match((await deleted).json(), { portfolioTransactions: 3 }, name)
    t.equal(await remains(t, customer.connection), 0)
    await rowCountsAgree(t)
  }
})

t.test('app delete without --with-connections: fails without waiting for locks', async (t) => {
  const customer = await addCustomer('busy')
  const session = await openClient(t, DATABASE_URL)
  await session.query('begin')
  await session.query('select from connection where id = $1 for update', [customer.connection.id])
  t.match(await operatorHere(['app', 'delete', 'busy'], within('lock_timeout=1000')), {
    code: 1,
    stderr: /^The app busy still has 1 connection with 2 portfolio transactions/,
  })
})

/** Environment of the operator, with a setting for its sessions. */
function within(limit: string): { DATABASE_URL: string } {
  const url = new URL(DATABASE_URL)
  url.searchParams.set('options', `-c ${limit}`)
  return { DATABASE_URL: url.href }
}

t.test('Deletion longer than statement_timeout: completes', async (t) => {
  const customer = await addCustomer('long')
  await afterDeletion(t, ['connection'], 'perform pg_sleep(1)')
  const args = ['connection', 'delete', customer.connection.id]
  t.match(await operatorHere(args, within('statement_timeout=500')), {
    code: 0,
    stdout: `deleted with ${IN_WORDS}`,
  })
  // `verify` compares the schema, too.
  await sql`drop function after_deletion cascade`.execute(db)
  await rowCountsAgree(t)
})

t.test('connection delete --file: locks in the order of ids, 500 in a transaction', async (t) => {
  const appId = await addApp(db, { name: 'in order' })
  const added = await Promise.all(Array.from({ length: 501 }, () => addConnection(db, appId)))
  const ids = added.map(({ id }) => BigInt(id)).sort((a, b) => (a < b ? 1 : -1))
  const [highest, lowest] = [ids[0], ids.at(-2)]
  const path = tokenFile('ids')
  writeFileSync(path, `${ids.join('\n')}\n${highest}\n`)
  const [first, second] = [await openClient(t, DATABASE_URL), await openClient(t, DATABASE_URL)]
  await first.query('begin')
  await first.query('select from connection where id = $1 for update', [highest])
  const deleted = call('connection', 'delete', '--file', path, '--json')
  await operatorWaits(db)
  const lock = 'select from connection where id = $1 for update nowait'
  await t.rejects(second.query(lock, [lowest]), { code: '55P03' }, 'locked before the highest id')
  await second.query(lock, [ids.at(-1)])
  t.pass('the last line is in the second transaction')
  await first.query('commit')
  t.match((await deleted).json(), { connections: 501, missing: 1 })
  writeFileSync(path, (await addConnection(db, appId)).id)
  t.match(await call('connection', 'delete', '--file', path), {
    code: 0,
    stdout: `1 connection deleted with ${describeRows(noRows)}.\n`,
  })
})

t.test('connection delete --file: a damaged line is the id of no connection', async (t) => {
  const { connection } = await addCustomer('damaged file')
  const path = tokenFile('damaged')
  writeFileSync(path, `customer\0 1\n${connection.id}\n`)
  t.match(await call('connection', 'delete', '--file', path, '--app', 'damaged file'), {
    code: 0,
    stdout: /^1 connection deleted .*; 1 of the ids had none\.\n$/,
  })
})

t.test('connection delete: another session deletes it at the same time', async (t) => {
  const { connection } = await addCustomer('deleted twice')
  const session = await openClient(t, DATABASE_URL)
  await session.query('begin')
  await session.query('delete from connection where id = $1', [connection.id])
  const second = call('connection', 'delete', connection.id)
  await operatorWaits(db)
  await session.query('commit')
  t.match(await second, { code: 1, stderr: 'The connection does not exist any more.\n' })
  await rowCountsAgree(t)
})
