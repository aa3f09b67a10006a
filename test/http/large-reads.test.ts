import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import t, { type Test } from 'tap'
import { withBlockedStatements } from '../support/blocked-statements.ts'
import { addCaller, addPortfolioTransactions, addTransferOrders } from '../support/rows.ts'
import { type Service, startService } from '../support/service.ts'
import { until } from '../support/until.ts'

const ORDERS = 1_500
const ROWS = 12_000

const { db, databaseUrl, get, port } = await startService(t, {
  environment: { STATEMENT_TIMEOUT_MS: '60000' },
})
const [busy, long, other] = [await addCaller(db), await addCaller(db), await addCaller(db)]
const day = (n: number) => new Date(Date.UTC(2025, 0, 1) + n * 3_600_000)
const orders = Array.from({ length: ORDERS }, (_, n) => ({
  completed_at: day(n),
  name: n === 0 ? 'oldest' : `order ${n}`,
}))
await addTransferOrders(db, busy.connection, ...orders)
await sql`insert into portfolio_transaction
    (connection_id, transaction_id, portfolio_id, type, operation_date_day)
  select ${busy.connection.id}, gen_random_uuid(), gen_random_uuid(), 'BUY', '2025-01-01'
  from generate_series(1, ${ROWS})`.execute(db)
// As many rows, and few in a month.
const sparse = await addCaller(db)
await sql`insert into portfolio_transaction
    (connection_id, transaction_id, portfolio_id, type, operation_date_day)
  select ${sparse.connection.id}, gen_random_uuid(), gen_random_uuid(), 'BUY', date '2025-01-01' - n
  from generate_series(1, ${ROWS}) n`.execute(db)
const description = 'x'.repeat(10_000)
const longRows = Array.from({ length: 100 }, () => ({ description }))
await addPortfolioTransactions(db, long.connection, ...longRows)
await addTransferOrders(db, other.connection, {})
await addPortfolioTransactions(db, other.connection, {}, {})

t.test('200: all transfer orders, newest first, also many', async (t) => {
  const { token, connection } = busy
  const response = await get(connection.orders, { token })
  t.equal(response.status, 200)
  const names = response.json().map(({ name }: { name: string }) => name)
  t.same(names, orders.map(({ name }) => name).reverse())
  const etag = String(response.headers.get('etag'))
  const known = await get(connection.orders, { token, headers: { 'if-none-match': etag } })
  t.equal(known.status, 304)
  const stale = await get(connection.orders, { token, headers: { 'if-none-match': 'W/"1.1-x"' } })
  t.equal(stale.json().length, ORDERS)
  const head = await get(connection.orders, { token, method: 'HEAD' })
  t.equal(head.headers.get('etag'), etag)
})

/** Reads whose cost is large, with the rows that only they reach. */
const LARGE = {
  'many transfer orders': {
    path: busy.connection.orders,
    table: 'assets_transfer_order',
    rows: sql`name = 'oldest'`,
  },
  'a page behind many rows of one day': {
    path: `${busy.connection.portfolio}?limit=20&page=550`,
    table: 'portfolio_transaction',
    rows: sql`connection_id = ${sql.lit(busy.connection.id)}`,
  },
  'a page of many rows': {
    path: `${busy.connection.portfolio}?limit=10000`,
    table: 'portfolio_transaction',
    rows: sql`connection_id = ${sql.lit(busy.connection.id)}`,
  },
  'an export': {
    path: busy.connection.portfolio,
    table: 'portfolio_transaction',
    rows: sql`connection_id = ${sql.lit(busy.connection.id)}`,
    accept: 'text/csv',
  },
  'a page of long rows, after another one': {
    token: long.token,
    path: long.connection.portfolio,
    table: 'portfolio_transaction',
    rows: sql`connection_id = ${sql.lit(long.connection.id)}`,
  },
} as const

/** Number of statements of the service that PostgreSQL runs. */
async function running(): Promise<number> {
  const { rows } = await sql`select from pg_stat_activity where datname = current_database()
    and application_name = 'investment-data-query-service' and state = 'active'`.execute(db)
  return rows.length
}

for (const [name, { path, table, rows, ...more }] of Object.entries(LARGE)) {
  t.test(`200: another app while all reads of this kind wait: ${name}`, async (t) => {
    const { accept, token } = { accept: 'application/json', token: busy.token, ...more }
    const started = { token, headers: { accept } }
    // The first one finds the app of the token.
    for (let n = 0; n < 2; n += 1) t.equal((await get(path, started)).status, 200)
    await withBlockedStatements(
      t,
      db,
      async () => {
        const sockets: Socket[] = []
        // Not all at once: each finds an idle connection to PostgreSQL if there is one.
        for (let n = 0; n < 60; n += 1) {
          const socket = connect(port, '127.0.0.1')
            .on('error', () => {})
            .resume()
          sockets.push(socket)
          socket.write(
            `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nAccept: ${accept}\r\n\r\n`,
          )
          await sleep(15)
        }
        await until('a read waits', async () => (await running()) > 0)
        t.equal(await running(), 1, 'one of the two connections for large reads')
        for (const list of [other.connection.orders, other.connection.portfolio])
          t.equal((await get(list, { token: other.token })).status, 200)
        for (let n = 0; n < 3; n += 1) {
          const page = await get(`${sparse.connection.portfolio}?limit=10000`, sparse)
          t.equal(page.json().items.length, 10_000, 'a large page of another app')
          t.equal(await exportedRows({ get }), ROWS, 'an export of another app')
        }
        for (const socket of sockets) {
          socket.destroy()
          await once(socket, 'close')
        }
      },
      table,
      rows,
    )
    t.equal((await get(path, started)).status, 200)
  })
}

/** Returns the number of rows of an export of the app `sparse`. @throws Error if the response is cut */
async function exportedRows(service: Pick<Service, 'get'>): Promise<number> {
  const headers = { accept: 'application/x-ndjson' }
  const { status, text } = await service.get(sparse.connection.portfolio, { ...sparse, headers })
  return status === 200 ? text.split('\n').length - 1 : status
}

t.test('export that has begun: complete, while other apps use all their time', async (t) => {
  const service = await startService(t, {
    databaseUrl,
    environment: { STATEMENT_TIMEOUT_MS: '500' },
  })
  const slow = [busy, long]
  for (const caller of [...slow, sparse])
    t.equal((await service.get(caller.connection.orders, caller)).status, 200)
  let isRunning = true
  const readers: Promise<void>[] = []
  const use = async () => {
    for (const { connection, token } of [...slow, ...slow, ...slow]) {
      const readOn = async () => {
        while (isRunning) await service.get(`${connection.portfolio}?limit=10000`, { token })
      }
      readers.push(readOn())
    }
    await until('the slow reads have all connections', async () => (await running()) === 2)
    let complete = 0
    // A request whose first block finds no connection in time gets 503. One that has begun is complete.
    for (let n = 0; n < 10 || complete < 3; n += 1) {
      const rows = await exportedRows(service)
      if (rows !== 503) {
        t.equal(rows, ROWS)
        complete += 1
      }
    }
    isRunning = false
  }
  const isSlow = sql`connection_id <> ${sql.lit(sparse.connection.id)}`
  await withBlockedStatements(t, db, use, 'portfolio_transaction', isSlow)
  await Promise.all(readers)
})

const deepPage = `${sparse.connection.portfolio}?limit=20&page=550`

/** Sends deep pages whose statements wait. Returns the number of those that run at the same time. */
async function deepPagesTogether(t: Test, service: Pick<Service, 'get'>, ms: number) {
  let together = 0
  const responses: Promise<unknown>[] = []
  await withBlockedStatements(
    t,
    db,
    async () => {
      // Not all at once: each finds an idle connection to PostgreSQL if there is one.
      for (let n = 0; n < 4; n += 1) {
        responses.push(service.get(deepPage, sparse))
        await sleep(50)
      }
      together = await running()
      await sleep(ms)
    },
    'portfolio_transaction',
    sql`connection_id = ${sql.lit(sparse.connection.id)}`,
  )
  await Promise.all(responses)
  return together
}

async function untilDeepPagesRunTogether(t: Test, service: Pick<Service, 'get'>, ms: number) {
  await until('several run', async () => {
    for (let n = 0; n < 10; n += 1) t.equal((await service.get(deepPage, sparse)).status, 200)
    return (await deepPagesTogether(t, service, ms)) > 1
  })
}

t.test('200: deep pages run at the same time if the last ones were fast', async (t) => {
  await untilDeepPagesRunTogether(t, { get }, 0)
  t.equal(await deepPagesTogether(t, { get }, 0), 1, 'after slow ones')
})

t.test('503: a deep page that exceeds the statement timeout is a slow one', async (t) => {
  const service = await startService(t, {
    databaseUrl,
    environment: { STATEMENT_TIMEOUT_MS: '1000' },
  })
  await untilDeepPagesRunTogether(t, service, 1_200)
  t.equal(await deepPagesTogether(t, service, 1_200), 1)
})

t.test(
  'client of a large read leaves: PostgreSQL ends the read, and the next one runs',
  async (t) => {
    const path = `${busy.connection.portfolio}?limit=10000`
    await withBlockedStatements(t, db, async () => {
      const socket = connect(port, '127.0.0.1').on('error', () => {})
      socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${busy.token}\r\n\r\n`)
      await until('PostgreSQL runs the read', async () => (await running()) === 1)
      socket.destroy()
      await until('PostgreSQL has ended it', async () => (await running()) === 0)
    })
    t.equal((await get(path, { token: busy.token })).status, 200)
  },
)
