import { type Browser, chromium, type Page } from 'playwright-core'
import t from 'tap'
import { DEMO } from '../../seeds/demo-world.ts'
import { parseExact } from '../support/exact-json.ts'
import { DEMO_CONNECTION, DEMO_TOKEN, startSeededService } from './seeded-service.ts'

const FLAGS = [
  ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'],
  ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
]

const service = await startSeededService(t)
const browser: Browser = await chromium.launch({
  executablePath: process.env.CHROMIUM_PATH ?? '/usr/bin/chromium',
  args: FLAGS,
})
t.teardown(() => browser.close())

/** Opens the page, and notes whatever goes wrong on it. */
async function openPage(): Promise<{ page: Page; faults: string[] }> {
  const page = await browser.newPage()
  page.setDefaultTimeout(60_000)
  const faults: string[] = []
  page.on('pageerror', (error) => faults.push(error.message))
  page.on('console', (message) => {
    // The browser itself reports what breaks the policy, and every answer that is an error.
    if (['error', 'warning'].includes(message.type())) faults.push(message.text())
  })
  page.on('request', (request) => {
    const { origin, protocol } = new URL(request.url())
    if (origin !== service.url && protocol !== 'data:') faults.push(`asked ${request.url()}`)
  })
  await page.goto(`${service.url}/docs`)
  return { page, faults }
}

async function authorize(page: Page, token: string): Promise<void> {
  await page.getByRole('button', { name: 'Authorize' }).click()
  const dialog = page.locator('.dialog-ux')
  await dialog.getByRole('textbox').fill(token)
  await dialog.getByRole('button', { name: 'Apply credentials' }).click()
  await dialog.getByRole('button', { name: 'Close' }).first().click()
}

/** Expands an operation, executes it as it is filled in, and returns what the page shows. */
async function tryOut(page: Page, operationId: string) {
  const operation = page.locator(`[id$="${operationId}"]`)
  await operation.locator('.opblock-summary-control').click()
  await operation.getByRole('button', { name: 'Try it out' }).click()
  await operation.getByRole('button', { name: 'Execute' }).click()
  const live = operation.locator('.live-responses-table')
  return {
    status: await live.locator('.response .response-col_status').innerText(),
    body: await live.locator('.response .highlight-code code').first().innerText(),
  }
}

t.test('what a newcomer does on /docs brings the rows, and every digit of them', async (t) => {
  const { page, faults } = await openPage()
  await authorize(page, DEMO_TOKEN)
  const operations = {
    listPortfolioTransactions: 'portfolios/transactions?limit=1000&page=0',
    listAccountTransactions: 'accounts/transactions?limit=1000&page=0',
    listAssetsTransferOrders: 'assets-transfer',
  }
  for (const [operationId, request] of Object.entries(operations)) {
    const { status, body } = await tryOut(page, operationId)
    t.match(status, /^200/, operationId)
    const { text } = await service.get(`${DEMO_CONNECTION}/${request}`, { token: DEMO_TOKEN })
    t.strictSame(parseExact(body), parseExact(text), 'the connection that is filled in')
  }
  const portfolio = page.locator('[id$="listPortfolioTransactions"]')
  const example = portfolio.locator('.responses-wrapper .example').first()
  t.match(await example.innerText(), /"titles": 0\.000000000000000000000000000001,/)
  t.strictSame(faults, [], 'no error, nothing against the policy, no other host')
})

t.test('a token does not outlive the page, which shows a 401 as it came', async (t) => {
  const { page, faults } = await openPage()
  await authorize(page, DEMO_TOKEN)
  await page.reload()
  const { status, body } = await tryOut(page, 'listAssetsTransferOrders')
  t.match(status, /^401/)
  t.equal(JSON.parse(body).code, 'missing_credentials')
  t.equal(faults.length, 1, 'the 401 itself')
})

t.test('the page can neither be framed nor run what is not its own', async (t) => {
  const { headers } = await service.get('/docs')
  const policy = String(headers.get('content-security-policy'))
  t.notMatch(policy, /unsafe|https?:|\*/)
  t.match(policy, /default-src 'none';.*frame-ancestors 'none'/)
  t.equal(headers.get('x-content-type-options'), 'nosniff')
  t.equal((await service.get('/docs/yaml')).status, 404, 'YAML would round the numbers')
})

t.test('the page names no token but those of the demo world', async (t) => {
  const { text } = await service.get('/openapi.json')
  const tokens = new Set(text.match(/idq_\w+|DEMO[A-Z]+\d/g))
  t.strictSame([...tokens], [DEMO_TOKEN, DEMO.wealth.connections.small.token])
})
