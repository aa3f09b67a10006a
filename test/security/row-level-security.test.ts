import { sql } from 'kysely'
import type pg from 'pg'
import t, { type Test } from 'tap'
import '../../src/app.ts'
import { connectionKey, tokenHash } from '../../src/postgres/tokens.ts'
import { createDatabase, openClient } from '../support/database.ts'
import { loginOfService, openAsOwner } from '../support/logins.ts'
import {
  addAccountTransactions,
  addApp,
  addConnection,
  addPortfolioTransactions,
  addToken,
  addTransferOrders,
} from '../support/rows.ts'
import { statements } from '../support/statements.ts'

const ROWS = ['portfolio_transaction', 'account_transaction', 'assets_transfer_order'] as const
const CLOSED = ['app', 'app_token', 'connection', ...ROWS]

t.test('Without what a request must say, no row can be seen', async (t) => {
  const { service } = await twoApps(t)
  const rowCounts = ROWS.slice(0, 2).flatMap((table) => [`${table}_day`, `${table}_month`])
  for (const table of [...CLOSED, ...rowCounts]) {
    const column = { app: 'id', app_token: 'app_id', connection: 'id' }[table] ?? 'connection_id'
    t.same((await service.query(`select ${column} from ${table}`)).rows, [], table)
  }
  const statistics = 'select tablename from pg_stats where schemaname = $1'
  t.same((await service.query(statistics, ['public'])).rows, [{ tablename: 'kysely_migration' }])
})

t.test('A statement that skips a step, or makes one up, sees nothing', async (t) => {
  const { service, mine } = await twoApps(t)
  const asked = `select connection_id from portfolio_transaction where connection_id = ${mine.id}`
  t.same((await service.query(asked)).rows, [])
  for (const setting of ['token_hash', 'app_id', 'client_id', 'connection_id']) {
    await service.query('begin')
    await service.query(`select set_config('service.${setting}', '', true)`)
    for (const table of CLOSED) {
      const { rows } = await service.query(`select from ${table} where true`)
      t.equal(rows.length, 0, `${table} with an empty ${setting}`)
    }
    await service.query('rollback')
  }
})

t.test('A request leaves nothing behind for the next one of its session', async (t) => {
  const { service, mine } = await twoApps(t)
  const statement = statements.get('portfolio_transaction first page by tokenHash')
  const values = [mine.hash, ...lookup(mine.connection), '-infinity', 'infinity', '10']
  const { rows } = await service.query(String(statement?.text), values)
  t.equal(rows.length, 2, 'the lookup and a row')
  for (const table of ROWS) t.same((await service.query(`select from ${table}`)).rows, [], table)
  t.same((await service.query('select id from connection')).rows, [])
  t.same((await service.query('select app_id from app_token')).rows, [])
})

/** Each condition that keeps a statement to its caller's rows, as it stands in the SQL. */
const CONDITIONS = [
  `"t"."token_hash" = decode(given.token_hash, 'hex')`,
  `"a"."client_id" = given.client_id`,
  `"c"."app_id" = "caller"."app_id"`,
  `"c"."token_hash" = decode(caller.connection_hash, 'hex')`,
  '"c"."id" = $3::bigint',
  't.connection_id = $3::bigint',
  'd.connection_id = $3::bigint',
  'm.connection_id = $3::bigint',
]

/** The hash and the key name the same connection; the row counts are not shown. */
const REDUNDANT = [3, 4, 6, 7].map((index) => CONDITIONS[index])

t.test('A statement that lost a condition still shows nothing of another app', async (t) => {
  const { service, owner, mine, foreign } = await twoApps(t)
  const secrets = new RegExp([foreign.appId, ...foreign.rowIds, ...mine.others].join('|'))
  const leaks = new Map(CONDITIONS.map((condition) => [condition, 0]))
  for (const { title, text } of statements.values()) {
    for (const condition of CONDITIONS.filter((part) => text.includes(part))) {
      // A parameter that nothing else names would have no type.
      const forgetful = text.replaceAll(
        condition,
        `(($2::bytea is not null and $3::bigint is not null) or ${condition})`,
      )
      const caller = title.endsWith('clientId') ? mine.clientId : mine.hash
      for (const connection of [mine.connection, foreign.connection]) {
        const offset = title.includes('later page') ? ['0'] : []
        const list = title.includes('page') ? ['-infinity', 'infinity', '10', ...offset] : []
        const all = [caller, ...lookup(connection), ...list]
        const values = title.startsWith('caller') ? all.slice(0, 3) : all
        const seen = await everyField(service, forgetful, values)
        t.notMatch(seen, secrets, `${title} without ${condition}`)
        // What the second wall is worth: those whom it does not bind do see it.
        const open = await everyField(owner, forgetful, values)
        if (secrets.test(open)) leaks.set(condition, Number(leaks.get(condition)) + 1)
      }
    }
  }
  for (const condition of CONDITIONS.filter((part) => !REDUNDANT.includes(part))) {
    t.ok(leaks.get(condition), `without the wall, a lost ${condition} shows`)
  }
})

/** $2 and $3 of a statement: the hash of a connection's token, and the key. */
function lookup(token: string): [Buffer, string] {
  const hash = tokenHash(token)
  return [hash, connectionKey(hash)]
}

/** Columns without a name would overwrite each other in an object. */
async function everyField(client: pg.Client, text: string, values: unknown[]): Promise<string> {
  return JSON.stringify((await client.query({ text, values, rowMode: 'array' })).rows)
}

t.test('A total that lost its condition counts nothing of another app', async (t) => {
  const { service, owner, mine } = await twoApps(t)
  const values = [mine.hash, ...lookup(mine.connection), '2000-01-01', 'infinity', '10']
  for (const period of ['days', 'months']) {
    const title = `portfolio_transaction first page of ${period} by tokenHash`
    const text = String(statements.get(title)?.text)
    const forgetful = text.replaceAll(/[dm]\.connection_id = \$3::bigint/g, 'true')
    const total = async (client: pg.Client) => (await client.query(forgetful, values)).rows[0]
    t.match(await total(service), { total_items: '1' })
    t.match(await total(owner), { total_items: '5' })
  }
})

/** Two apps with a connection each: one row of each kind is mine, two are not. */
async function twoApps(t: Test) {
  const { url } = await createDatabase(t)
  const db = openAsOwner(t, url)
  const add = async (clientId: string, count: number) => {
    const appId = await addApp(db, { client_id: clientId })
    const hash = tokenHash(await addToken(db, appId))
    const connection = await addConnection(db, appId)
    const rows = Array.from({ length: count }, () => ({}))
    const rowIds = [
      ...(await addPortfolioTransactions(db, connection, ...rows)),
      ...(await addAccountTransactions(db, connection, ...rows)),
      ...(await addTransferOrders(db, connection, ...rows)),
    ]
    // Beside it, one more of the same app: that is nothing to whoever asks for the first.
    const beside = await addConnection(db, appId)
    const others = [
      ...(await addPortfolioTransactions(db, beside, {})),
      ...(await addAccountTransactions(db, beside, {})),
      ...(await addTransferOrders(db, beside, {})),
    ]
    return {
      id: connection.id,
      appId,
      clientId,
      hash,
      connection: connection.token,
      rowIds,
      others,
    }
  }
  const mine = await add('mine', 1)
  const foreign = await add('foreign', 2)
  await sql`analyze`.execute(db)
  const service = await openClient(t, await loginOfService(t, db, url))
  return { service, owner: await openClient(t, url), mine, foreign }
}
