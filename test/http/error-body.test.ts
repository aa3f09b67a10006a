import { sql } from 'kysely'
import t from 'tap'
import { duringOutage } from '../support/outage.ts'
import { isProblem } from '../support/problem.ts'
import { addCaller, addPortfolioTransactions, addTransferOrders, lists } from '../support/rows.ts'
import { startService } from '../support/service.ts'

const { db, get, log, databaseUrl } = await startService(t)
const { token, connection } = await addCaller(db)
await addPortfolioTransactions(db, connection, { description: 'a private matter' })

t.test('every error: the same members in the same order (contract 16)', async (t) => {
  const members = ['status', 'code', 'title', 'detail', 'requestId']
  const responses = [
    await get(connection.orders),
    await get(`${connection.orders}x`, { token }),
    await get(connection.orders, { token, method: 'DELETE' }),
    await get('/%ff'),
    await get('/%ff', { method: 'PUT' }),
  ]
  for (const response of responses) {
    t.strictSame(Object.keys(response.json()), members)
    t.equal(response.headers.get('cache-control'), 'no-store', 'errors are not cached')
  }
  const rejected = await get(`${connection.orders}?x`, { token })
  t.strictSame(Object.keys(rejected.json()), [...members, 'errors'])
  t.strictSame(Object.keys(rejected.json().errors[0]), ['parameter', 'code', 'detail'])
})

t.test('400 malformed_request: a path that cannot be decoded (contract 7)', async (t) => {
  for (const path of ['/%', '/%zz', connection.orders.replace(connection.token, '%ff')]) {
    isProblem(t, await get(path, { token }), 'malformed_request', path)
    isProblem(t, await get(path), 'malformed_request', `${path} without a token`)
  }
})

/** Makes a policy fail on every row, as an operator could by mistake. */
async function breakPolicy(policy: string, table: string): Promise<() => Promise<unknown>> {
  const set = (rule: string) =>
    sql.raw(`alter policy ${policy} on ${table} using (${rule})`).execute(db)
  const { rows } = await sql<{ rule: string }>`
    select pg_get_expr(polqual, polrelid) as rule from pg_policy
    where polname = ${policy} and polrelid = ${table}::regclass`.execute(db)
  await set('connection_id / 0 = 1')
  return () => set(String(rows[0]?.rule))
}

t.test(
  '500: a fixed detail; the cause is logged once with the request id (contract 19)',
  async (t) => {
    t.equal((await get(connection.portfolio, { token })).status, 200)
    const before = log.length
    const repair = await breakPolicy('of_the_connection', 'portfolio_transaction')
    const first = await get(connection.portfolio, { token })
    const second = await get(connection.portfolio, { token })
    t.equal((await get(connection.account, { token })).status, 200, 'other endpoints still work')
    await repair()

    for (const response of [first, second]) {
      const { requestId, detail } = isProblem(t, response, 'internal_error')
      t.equal(detail, 'The service failed. Report the requestId to its operator.')
      const lines = log.slice(before).filter((line) => line.includes(requestId))
      const causes = lines.filter((line) => line.includes('division by zero'))
      t.equal(causes.length, 1, 'the cause, once')
      const err = { code: '22012' }
      t.match(JSON.parse(String(causes[0])), { level: 50, msg: 'request failed', requestId, err })
      t.equal(lines.length, 2, 'the cause and the line of the request')
      t.notMatch(
        response.text,
        /division|policy|connection_id|22012|\.ts/,
        'the response reveals no cause',
      )
    }
    for (const secret of [token, connection.token, 'a private matter']) {
      t.notOk(
        log.some((line) => line.includes(secret)),
        'nothing secret in the log',
      )
    }
    t.equal((await get(connection.portfolio, { token })).status, 200, 'recovers without a restart')
  },
)

t.test('500: the same on all three endpoints (contract 19)', async (t) => {
  const tables = {
    portfolio: lists.portfolio.table,
    account: lists.account.table,
    orders: 'assets_transfer_order',
  } as const
  await lists.account.add(db, connection, {})
  await addTransferOrders(db, connection, {})
  for (const endpoint of ['portfolio', 'account', 'orders'] as const) {
    const repair = await breakPolicy('of_the_connection', tables[endpoint])
    isProblem(t, await get(connection[endpoint], { token }), 'internal_error', endpoint)
    await repair()
  }
})

t.test('503: the reason and its cause are logged once with the request id (contract 19)', (t) =>
  duringOutage(t, databaseUrl, async () => {
    const before = log.length
    const response = await get(connection.orders, { token })
    const { requestId } = isProblem(t, response, 'service_unavailable')
    t.equal(response.headers.get('retry-after'), '1')
    const lines = log.slice(before).map((line) => JSON.parse(line))
    const [line, ...more] = lines.filter((each) => each.requestId === requestId && each.level > 30)
    t.match(line, { level: 40, msg: 'request could not be served', reason: /database/ })
    t.match(line.cause, /not currently accepting connections/)
    const request = lines.find((each) => each.requestId === requestId && each.level === 30)
    t.match(request, { msg: 'request', unavailableReason: 'database' })
    t.same(more, [])
  }),
)
