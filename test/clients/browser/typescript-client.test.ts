import { join } from 'node:path'
import t from 'tap'
import { DEMO } from '../../../seeds/sample-data.ts'
import { type Fault, startFaultProxy } from '../../support/clients/fault-proxy.ts'
import { readList } from '../../support/clients/service.ts'
import { installTypescriptClient } from '../../support/clients/typescript-package.ts'
import { addresses } from '../../support/rows.ts'
import { DEMO_TOKEN, startSeededService } from '../../support/seeded-service.ts'
import { withLengths } from '../../support/with-lengths.ts'
import { launchChromium } from './chromium.ts'

const browser = await launchChromium(t)
const service = await startSeededService(t)

const folder = t.testdir({})
await installTypescriptClient(folder)

/** Opens a page of an origin that has the built package at /package. */
async function openPage(origin: string) {
  // The service allows only its own scripts, and the package has the origin of the service here.
  const page = await browser.newPage({ bypassCSP: true })
  await page.route('**/package/*', (route) => {
    const path = join(folder, 'node_modules/@investment-data/client/dist/index.js')
    return route.fulfill({ path, contentType: 'text/javascript' })
  })
  await page.goto(`${origin}/openapi.json`)
  return page
}

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
  const faults: Fault[] = ['none', 'cut', 'none', 'unavailable']
  // The browser also requests an icon.
  const fault = (_: number, path: string) =>
    (path.includes('/portfolios/') ? faults.shift() : undefined) ?? 'none'
  const proxy = await startFaultProxy(t, { target: service.url, fault })
  const page = await openPage(proxy.url)
  const { token } = DEMO.wealth.connections.small
  const parameters = JSON.stringify([proxy.url, DEMO_TOKEN, token])
  const result = await page.evaluate(`${PROGRAM}(${parameters})`)
  const caller = { token: DEMO_TOKEN, connection: { token, ...addresses(token) } }
  const rows = await readList(service, caller, 'portfolio')
  t.strictSame(result, { rows, code: 'connection_not_found' })
  t.match(proxy.counts, { cut: 1, unavailable: 1 })
})

/** Code in a page of another origin: the error of a call, and its attempts. */
const OTHER_ORIGIN = `(async ([baseUrl, token]) => {
  const { InvestmentData } = await import('/package/index.js')
  const codes = []
  const onAttempt = ({ code }) => codes.push(code)
  const api = new InvestmentData({ baseUrl, token, onAttempt, retry: { baseDelayMs: 1 } })
  const error = await api.connection('unknown').transferOrders().catch((error) => error)
  return { name: error.name, message: error.message, codes }
})`

t.test('Chromium: a page of another origin gets a sentence after one attempt', async (t) => {
  const other = await startFaultProxy(t, { target: service.url, fault: () => 'none' })
  const page = await openPage(other.url)
  const parameters = JSON.stringify([service.url, DEMO_TOKEN])
  const result = await page.evaluate(`${OTHER_ORIGIN}(${parameters})`)
  t.match(
    result,
    withLengths({
      name: 'TransportError',
      message: /CORS.*: send the requests from your server/,
      codes: ['cross_origin'],
    }),
  )
})
