import { join } from 'node:path'
import t from 'tap'
import { DEMO } from '../../../seeds/sample-data.ts'
import { type Fault, startFaultProxy } from '../../support/clients/fault-proxy.ts'
import { readList } from '../../support/clients/service.ts'
import { run } from '../../support/programs.ts'
import { addresses } from '../../support/rows.ts'
import { DEMO_TOKEN, startSeededService } from '../../support/seeded-service.ts'
import { launchChromium } from './chromium.ts'

const browser = await launchChromium(t)
const service = await startSeededService(t)
const ROOT = join(import.meta.dirname, '../../..')

/** Code in the page, with the built package at /package. */
const PROGRAM = `(async ([baseUrl, token, connection]) => {
  const { InvestmentData, ProblemError } = await import('/package/index.js')
  const api = new InvestmentData({ baseUrl, token, pageSize: 3, retry: { baseDelayMs: 1 } })
  const rows = []
  for await (const row of api.connection(connection).portfolioTransactions()) rows.push(row)
  const error = await api.connection('unknown').transferOrders().catch((error) => error)
  return { rows, code: error instanceof ProblemError && error.code }
})`

t.test('Chromium: the built package reads every row and digit, after failures', async (t) => {
  const dist = t.testdir({})
  const project = join(ROOT, 'clients/typescript')
  const tsc = join(ROOT, 'node_modules/.bin/tsc')
  // packages.test.ts checks the types.
  await run(tsc, ['-p', project, '--outDir', dist, '--noCheck'])
  const faults: Fault[] = ['none', 'cut', 'none', 'unavailable']
  // The browser also requests an icon.
  const fault = (_: number, path: string) =>
    (path.includes('/portfolios/') ? faults.shift() : undefined) ?? 'none'
  const proxy = await startFaultProxy(t, { target: service.url, fault })
  // The service allows only its own scripts, and the package has the origin of the service here.
  const page = await browser.newPage({ bypassCSP: true })
  await page.route('**/package/*', (route) => {
    const name = new URL(route.request().url()).pathname.replace('/package/', '')
    return route.fulfill({ path: join(dist, name), contentType: 'text/javascript' })
  })
  await page.goto(`${proxy.url}/openapi.json`)
  const { token } = DEMO.wealth.connections.small
  const parameters = JSON.stringify([proxy.url, DEMO_TOKEN, token])
  const result = await page.evaluate(`${PROGRAM}(${parameters})`)
  const caller = { token: DEMO_TOKEN, connection: { token, ...addresses(token) } }
  const rows = await readList(service, caller, 'portfolio')
  t.strictSame(result, { rows, code: 'connection_not_found' })
  t.match(proxy.counts, { cut: 1, unavailable: 1 })
})
