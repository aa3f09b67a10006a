/** Runs the service with its sample data, and sends the figures of one warm GET to the parent process. */
import { Session } from 'node:inspector/promises'
import { registerHooks } from 'node:module'
import { setTimeout as sleep } from 'node:timers/promises'
import { DEMO } from '../../seeds/sample-data.ts'
import { until } from '../../test/support/until.ts'

const SRC = new URL('../../src/', import.meta.url).href
const ROUTE = `${SRC}routes/portfolio-transactions.ts`
const { token, connections } = DEMO.wealth
const path = `/api/v1/queries/connections/${connections.large.token}/portfolios/transactions?limit=20`

/** Files that each file imports at run time. */
const imports = new Map<string, Set<string>>()
registerHooks({
  resolve(specifier, context, next) {
    const found = next(specifier, context)
    const from = context.parentURL ?? ''
    if (found.url.startsWith(SRC))
      imports.set(from, (imports.get(from) ?? new Set()).add(found.url))
    return found
  },
})

await import('../../src/server.ts')
const url = `http://127.0.0.1:${process.env.PORT}`
const isReady = async () => (await fetch(`${url}/health/ready`).catch(() => undefined))?.ok === true
await until('the service is ready', isReady)
const get = async () => {
  const response = await fetch(url + path, { headers: { authorization: `Bearer ${token}` } })
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`)
  await response.arrayBuffer()
  // Time for the end of the request, such as its log line.
  await sleep(30)
}
for (let i = 0; i < 100; i += 1) await get()

const session = new Session()
session.connect()
await session.post('Profiler.enable')
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })

/** Returns the functions of src that ran since the last call, as `file:offset`. */
async function calledFunctions(): Promise<Set<string>> {
  const { result } = await session.post('Profiler.takePreciseCoverage')
  const called = result
    .filter((script) => script.url.startsWith(SRC))
    .flatMap(({ url, functions }) =>
      functions.flatMap(({ ranges: [range] }) =>
        range !== undefined && range.count > 0 ? [`${url}:${range.startOffset}`] : [],
      ),
    )
  return new Set(called)
}

await calledFunctions()
await sleep(1_000)
/** Functions of timers, which a slow machine runs in each request. */
const idle = await calledFunctions()
let functions: Set<string> | undefined
for (let i = 0; i < 20; i += 1) {
  await calledFunctions()
  await get()
  const called = await calledFunctions()
  functions = functions?.intersection(called) ?? called
}

const reached = new Set([ROUTE])
for (const file of reached) for (const imported of imports.get(file) ?? []) reached.add(imported)

functions = functions?.difference(idle)
const files = new Set([...(functions ?? [])].map((name) => name.replace(/:\d+$/, '')))
process.send?.([reached.size, functions?.size, files.size])
