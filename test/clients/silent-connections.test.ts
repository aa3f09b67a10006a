/**
 * Idle connections that a firewall or a suspended computer has dropped without a sign: new connections work, old ones never
 * get a response.
 */
import t, { type Test } from 'tap'
import { type Attempt, InvestmentData } from '../../clients/typescript/src/index.ts'
import { PYTHON, pythonEnvironment } from '../support/clients/python.ts'
import { needsProgram, run } from '../support/programs.ts'
import { addCaller } from '../support/rows.ts'
import { startService } from '../support/service.ts'
import { forward, startTcpProxy } from '../support/tcp-proxy.ts'

await needsProgram(t, PYTHON, 'python3')

const service = await startService(t)
const caller = await addCaller(service.db)
const PARALLEL = 8
const TIMEOUT_MS = 2000

/** Returns the URL of a proxy whose first connections get one response each, all at once, and are silent after it. */
async function startSilentProxy(t: Test): Promise<string> {
  const waiting: (() => void)[] = []
  const proxy = await startTcpProxy(t, service.url, (client) => {
    let isSilent = false
    forward(client, service.url, {
      fromClient: (data, { server }) => {
        if (isSilent) return
        isSilent = true
        waiting.push(() => server.write(data))
        if (waiting.length < PARALLEL) return
        for (const send of waiting.splice(0, PARALLEL)) send()
        // Later connections do not wait.
        while (waiting.length < PARALLEL - 1) waiting.push(() => {})
      },
    })
  })
  return proxy.origin
}

/** Runs a program. A warning of Python is an error. */
const python = (program: string) =>
  run(PYTHON, ['-X', 'dev', '-W', 'error', '-c', program], { env: pythonEnvironment })

t.test('TypeScript: two attempts of a call may fail, not one for each connection', async (t) => {
  const attempts: Attempt[] = []
  const api = new InvestmentData({
    baseUrl: await startSilentProxy(t),
    token: caller.token,
    timeoutMs: TIMEOUT_MS,
    retry: { baseDelayMs: 1 },
    onAttempt: (attempt) => attempts.push(attempt),
  })
  const connection = api.connection(caller.connection.token)
  await Promise.all(Array.from({ length: PARALLEL }, () => connection.transferOrders()))
  attempts.splice(0)
  t.strictSame([...(await connection.transferOrders())], [])
  // Node.js may take a second old connection, before it has closed the first one.
  t.ok(attempts.length <= 3, `${attempts.length} attempts`)
  t.equal(attempts.at(-1)?.code, undefined)
})

t.test('Python: one attempt of a call may fail, not one for each connection', async (t) => {
  const program = `
from concurrent.futures import ThreadPoolExecutor
from investment_data import InvestmentData, Retry

attempts = []
with InvestmentData(
    "${await startSilentProxy(t)}", "${caller.token}", timeout=${TIMEOUT_MS / 1000},
    retry=Retry(base_delay=0), on_attempt=lambda attempt: attempts.append(attempt.code),
) as api, ThreadPoolExecutor(${PARALLEL}) as threads:
    connection = api.connection("${caller.connection.token}")
    list(threads.map(lambda _: connection.transfer_orders(), range(${PARALLEL})))
    attempts.clear()
    print(connection.transfer_orders(), attempts)
`
  t.equal(await python(program), "[] ['timeout', None]\n")
})

t.test(
  'Python: a connection that was idle for longer than the service keeps it is not used',
  async (t) => {
    let connections = 0
    const proxy = await startTcpProxy(t, service.url, (client) => {
      connections += 1
      forward(client, service.url)
    })
    const program = `
import time
from investment_data import InvestmentData

clock = time.time
with InvestmentData("${proxy.origin}", "${caller.token}") as api:
    # The service says that it keeps connections for 72 s. The clock may also step back.
    for later in (0, 60, 125, 200, 100):
        time.time = lambda: clock() + later
        api.connection("${caller.connection.token}").transfer_orders()
`
    await python(program)
    t.equal(connections, 3, 'new ones after 75 s, and after the step')
  },
)
