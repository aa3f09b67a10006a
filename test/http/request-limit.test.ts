import t from 'tap'
import { withBlockedStatements } from '../faults/support/blocked-statements.ts'
import { isProblem } from '../support/problem.ts'
import { addCaller, addPortfolioTransactions, type Caller } from '../support/rows.ts'
import { startService } from '../support/service.ts'
import { until } from '../support/until.ts'

const LIMIT = 4

t.test('503: MAX_REQUESTS are in flight; later requests get a response again', async (t) => {
  const environment = { STATEMENT_TIMEOUT_MS: '60000', MAX_REQUESTS: String(LIMIT) }
  const service = await startService(t, { environment })
  // One app alone may not have all requests in flight.
  const callers = await Promise.all(Array.from({ length: LIMIT }, () => addCaller(service.db)))
  for (const { connection } of callers) await addPortfolioTransactions(service.db, connection, {})
  const send = ({ token, connection }: Caller) => service.get(connection.portfolio, { token })
  // Unknown callers may not have all requests in flight either.
  for (const caller of callers) t.equal((await send(caller)).status, 200)
  const path = String(callers[0]?.connection.portfolio)
  const anonymous = () => service.get(path)
  const responses: Promise<{ status: number }>[] = []
  await withBlockedStatements(t, service.db, async () => {
    for (const [index, caller] of callers.entries()) {
      t.equal((await anonymous()).status, 401, `room with ${index} in flight`)
      responses.push(send(caller))
    }
    await until('no room is left', async () => (await anonymous()).status === 503)
    const { detail } = isProblem(t, await anonymous(), 'service_unavailable')
    t.equal(detail, 'Too many requests are in flight. Try again soon.')
    t.equal((await service.get('/health/live')).status, 200)
    t.equal((await service.get('/openapi.json')).status, 200, 'documents have a limit apart')
  })
  for (const { status } of await Promise.all(responses)) t.equal(status, 200)
  for (let i = 0; i <= LIMIT; i += 1) t.equal((await anonymous()).status, 401)
})
