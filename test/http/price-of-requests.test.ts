import { Session } from 'node:inspector/promises'
import t, { type Test } from 'tap'
import { AUTHORIZATION, LONGEST, PARTS, type Part, USUAL } from '../support/longest-parts.ts'
import { sendRaw } from '../support/raw-http.ts'
import { addCaller } from '../support/rows.ts'
import { until } from '../support/until.ts'

/** Most blocks of code for each byte of a part: some parts are read twice, none of them more often as it grows. */
const BLOCKS_PER_BYTE = 8

const profiler = new Session()
profiler.connect()
t.teardown(() => profiler.disconnect())
await profiler.post('Profiler.enable')
await profiler.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
// V8 counts the blocks only of functions that it compiles from now on.
const { startService } = await import('../support/service.ts')
const { db, port, log } = await startService(t, { logLevel: 'info' })
const { token, connection } = await addCaller(db)

for (const [caller, authorization, parts] of [
  ['an unknown caller', 'Bearer nobody', [...PARTS, AUTHORIZATION]],
  ['a known app', `Bearer ${token}`, PARTS],
] as const) {
  t.test(`${caller}: the work for each part of a request grows with its length`, async (t) => {
    const usual = await workFor(t, USUAL, authorization)
    t.ok(usual > 200, `${usual} blocks for a usual request`)
    for (const part of parts) {
      const work = await workFor(t, part, authorization)
      const most = 2 * usual + BLOCKS_PER_BYTE * LONGEST
      t.ok(work <= most, `${part.name}: ${work} blocks, at most ${most}`)
    }
  })
}

/** Counts the blocks of code of the service and of its packages that run for a request: V8 counts them for coverage. */
async function workFor(t: Test, part: Part, authorization: string): Promise<number> {
  const headers = { host: 'a', authorization, ...part.headers }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  const request = `GET ${connection.portfolio}${part.path} HTTP/1.1`
  const bytes = [request, ...lines, '', ''].join('\r\n')
  // The first one teaches the service which app calls.
  await sendLogged(bytes)
  // Each call begins to count anew.
  await profiler.post('Profiler.takePreciseCoverage')
  await sendLogged(bytes)
  const { result } = await profiler.post('Profiler.takePreciseCoverage')
  const scripts = result.filter(({ url }) => /\/(?:src|node_modules)\//.test(url))
  const counts = scripts.flatMap(({ functions }) =>
    functions.flatMap(({ ranges }) => ranges.map(({ count }) => count)),
  )
  t.ok(
    scripts.some(({ url }) => url.includes('/src/http/')),
    part.name,
  )
  return counts.reduce((sum, count) => sum + count, 0)
}

async function sendLogged(bytes: string): Promise<void> {
  const lines = log.length
  const { responses } = await sendRaw({ port, bytes })
  if (responses.length !== 1) throw new Error(`${responses.length} responses`)
  await until('the request is logged', () => log.length > lines)
}
