import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { sql } from 'kysely'
import t from 'tap'
import { PYTHON } from '../support/clients/python.ts'
import { openClient } from '../support/database.ts'
import { operatorHere } from '../support/operator-process.ts'
import { needsProgram } from '../support/programs.ts'
import { addApp, addPortfolioTransactions, addresses, addToken } from '../support/rows.ts'
import { startService } from '../support/service.ts'
import { withLengths } from '../support/with-lengths.ts'

await needsProgram(t, '/usr/bin/python3', 'python3-psycopg', ['-c', 'import psycopg'])

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
  'docs/writing.md: the examples write what the API returns, and repeat without changes',
  async (t) => {
    const token = await addToken(db, await addApp(db, { name: 'my-app' }))
    const writer = await openClient(t, login.href)
    const [create = '', write = ''] = exampleOf('Example in SQL').split('\n\n')
    await writer.query(create)
    await writer.query(write)
    const connection = addresses('Xq4tV7mZpR2cLw9KfB3nHd')
    const account = await service.get(connection.account, { token })
    t.match(account.text, /"amount":-1.50,.*"amount":250.00,/s)
    const python = () =>
      promisify(execFile)(PYTHON, ['-c', exampleOf('Example in Python')], {
        env: { DATABASE_URL: login.href },
      })
    const { rows } = await sql<{ id: string }>`select id from connection`.execute(db)
    await addPortfolioTransactions(db, { id: rows[0]?.id ?? '' }, {})
    await python()
    const portfolio = await service.get(connection.portfolio, { token })
    t.match(
      portfolio.json(),
      withLengths({ totalItems: 2, items: [{ type: 'SELL' }, { type: 'BUY' }] }),
    )
    t.match(portfolio.text, /"amount":51.00,.*"amount":120.50,/s)
    await writer.query(write)
    await python()
    const again = await service.get(connection.portfolio, { token })
    t.equal(again.headers.get('etag'), portfolio.headers.get('etag'))
    t.ok(again.headers.get('data-refreshed'))
    t.match(await operatorHere(['verify'], { DATABASE_URL }), { code: 0 })
  },
)
