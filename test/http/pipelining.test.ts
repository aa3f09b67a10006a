import t from 'tap'
import { sendRaw } from '../support/raw-http.ts'
import { addCaller, addPortfolioTransactions } from '../support/rows.ts'
import { startService } from '../support/service.ts'

const { db, port } = await startService(t)
const { token, connection } = await addCaller(db)
await addPortfolioTransactions(db, connection, {}, {})
const PATHS = ['/docs', '/openapi.json', '/health/live', '/health/ready', '/nothing', '/%zz']

const pipelined = (path: string, count: number) =>
  `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`.repeat(count)

t.test('10 requests at once: 10 responses', async (t) => {
  for (const path of [...PATHS, connection.portfolio]) {
    const bytes = pipelined(path, 10)
    const { responses } = await sendRaw({ port, bytes, responses: 10 })
    t.equal(responses.length, 10, path.replace(connection.token, ':token'))
  }
})

t.test('1000 requests at once: the connection is closed', async (t) => {
  for (const path of [...PATHS, connection.portfolio]) {
    const bytes = pipelined(path, 1_000)
    const { responses, closed } = await sendRaw({ port, bytes, responses: 1_000 })
    t.ok(closed, path.replace(connection.token, ':token'))
    t.ok(responses.length <= 10, `${responses.length} responses`)
  }
})

t.test('1000 requests one after the other: 1000 responses', async (t) => {
  const bytes = Array.from({ length: 1_000 }, () => pipelined('/health/live', 1))
  const { responses } = await sendRaw({ port, bytes, responses: 1_000 })
  t.equal(responses.length, 1_000)
})
