import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { sql } from 'kysely'
import t from 'tap'
import { openClient } from '../support/database.ts'
import { operatorHere } from '../support/operator-process.ts'
import { addApp, addresses, addToken } from '../support/rows.ts'
import { startService } from '../support/service.ts'

const service = await startService(t)
const { db, databaseUrl: DATABASE_URL } = service
const login = new URL(DATABASE_URL)
login.username = `writer_${randomBytes(6).toString('hex')}`
login.password = randomBytes(12).toString('hex')
const role = sql.id(login.username)
await sql`create role ${role} login password ${sql.lit(login.password)} in role investment_writer`.execute(
  db,
)
t.teardown(() => sql`drop role ${role}`.execute(db))
const page = await readFile('docs/writing.md', 'utf8')
const exampleOf = (heading: string) =>
  /```\w+\n([^`]*)```/.exec(page.slice(page.indexOf(`## ${heading}`)))?.[1] ?? ''

t.test(
  'docs/writing.md: the SQL writes what the API returns, and repeats without changes',
  async (t) => {
    const token = await addToken(db, await addApp(db, { name: 'my-app' }))
    const writer = await openClient(t, login.href)
    const [create = '', write = ''] = exampleOf('Example in SQL').split('\n\n')
    await writer.query(create)
    await writer.query(write)
    const { account } = addresses('Xq4tV7mZpR2cLw9KfB3nHd')
    const first = await service.get(account, { token })
    t.match(first.text, /"amount":-1.50,.*"amount":250.00,/s)
    await writer.query(write)
    const again = await service.get(account, { token })
    t.equal(again.headers.get('etag'), first.headers.get('etag'))
    t.ok(again.headers.get('data-refreshed'))
    t.match(await operatorHere(['verify'], { DATABASE_URL }), { code: 0 })
  },
)

t.test(
  '42501: investment_writer reads no hash, and writes nothing that triggers maintain',
  async (t) => {
    const writer = await openClient(t, login.href)
    for (const statement of [
      'select token_hash from connection',
      'select * from app_token',
      'select client_id from app',
      'update connection set portfolio_transactions = 0',
      'update connection set data_version = 0',
      'update connection set app_id = app_id',
      'delete from connection',
      'insert into connection (id, change_horizon) values (1, 1)',
      'update portfolio_transaction set change_number = 1',
      'insert into account_transaction (change_number) values (1)',
      'insert into portfolio_transaction_month values (1, current_date, 1)',
      'delete from account_transaction_removal',
      'update connection_version set changed_at = now()',
      'truncate assets_transfer_order',
      "insert into app (name) values ('mine')",
      'create table mine ()',
    ])
      await t.rejects(writer.query(statement), { code: '42501' }, statement)
  },
)
