/** What V8 keeps of requests that have ended. Objects that a scavenge promotes stay until the next full garbage collection. */
import { once } from 'node:events'
import { open, readFile } from 'node:fs/promises'
import { Agent, type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { openTestDatabase } from '../support/new-database.ts'
import { startServiceProcess } from '../support/processes/service-process.ts'
import { addCaller, addPortfolioTransactions } from '../support/rows.ts'

/** Clients whose connections stay open, as those of apps do. */
const CLIENTS = 16
const WARM_UP = 4_000
const REQUESTS = 8_000
/**
 * In bytes of each request. With a Set of the reads in flight it is 1,200, with a listener on the socket of each client 4,200, and
 * now 50 to 100.
 */
const MOST_PROMOTED = 400

/** Prints a line for each garbage collection. */
const TRACE = `import v8 from 'node:v8'; v8.setFlagsFromString('--trace-gc-nvp')`

const { db, login } = await openTestDatabase(t)
const { token, connection } = await addCaller(db)
await addPortfolioTransactions(db, connection, ...Array.from({ length: 13 }, () => ({})))

t.test('requests that have ended: a scavenge keeps none of their objects', async (t) => {
  const path = join(t.testdir({ output: '' }), 'output')
  const output = await open(path, 'a')
  t.teardown(() => output.close())
  const environment = {
    DATABASE_URL: login,
    NODE_OPTIONS: `--max-semi-space-size=4 --import=data:text/javascript,${encodeURIComponent(TRACE)}`,
  }
  const { port } = await startServiceProcess(t, environment, undefined, output.fd)
  const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS })
  t.teardown(() => agent.destroy())
  const get = async (headers: Record<string, string>): Promise<IncomingMessage> => {
    const authorization = `Bearer ${token}`
    const options = { port, path: connection.portfolio, agent }
    const sent = request({ ...options, headers: { ...headers, authorization } }).end()
    const [response] = await once(sent, 'response')
    await once(response.resume(), 'end')
    return response
  }
  const { etag = '' } = (await get({})).headers
  const statuses: Record<number, number> = {}
  const sendAll = async (requests: number) => {
    let sent = 0
    const client = async () => {
      while (sent < requests) {
        sent += 1
        // Every other request has the ETag of the data.
        const { statusCode = 0 } = await get(sent % 2 === 0 ? { 'if-none-match': etag } : {})
        statuses[statusCode] = (statuses[statusCode] ?? 0) + 1
      }
    }
    await Promise.all(Array.from({ length: CLIENTS }, client))
  }
  const linesOf = async () =>
    (await readFile(path, 'utf8')).match(/^.*(?: gc=s |"gc":"s").*$/gm) ?? []

  await sendAll(WARM_UP)
  const before = await linesOf()
  await sendAll(REQUESTS)
  const scavenges = (await linesOf()).slice(before.length)
  const promoted = scavenges.map((line) => Number(/promoted"?[=:](\d+)/.exec(line)?.[1]))
  const bytes = promoted.reduce((sum, each) => sum + each, 0) / REQUESTS
  t.comment(`${scavenges.length} scavenges, ${bytes.toFixed(0)} bytes promoted of a request`)
  t.same(Object.keys(statuses), ['200', '304'])
  t.ok(scavenges.length > 10, 'the space of new objects was full several times')
  t.ok(bytes < MOST_PROMOTED, `${bytes} bytes`)
})
