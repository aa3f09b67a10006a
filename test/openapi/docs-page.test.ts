import type { Page } from 'playwright-core'
import t from 'tap'
import { DEMO } from '../../seeds/sample-data.ts'
import { launchChromium } from '../support/chromium.ts'
import { parseExact } from '../support/exact-json.ts'
import { startService } from '../support/service.ts'
import { DEMO_CONNECTION, DEMO_TOKEN, startSeededService } from './seeded-service.ts'

const browser = await launchChromium(t)
const service = await startSeededService(t)

/** Opens the page, and records its errors and its requests to other servers. */
async function openPage(): Promise<{ page: Page; errors: string[] }> {
  const page = await browser.newPage()
  page.setDefaultTimeout(60_000)
  const errors: string[] = []
  page.on('pageerror', (error) => errors.push(error.message))
  page.on('console', (message) => {
    // The browser reports violations of the policy, and responses that are errors.
    if (['error', 'warning'].includes(message.type())) errors.push(message.text())
  })
  page.on('request', (request) => {
    const { origin, protocol } = new URL(request.url())
    if (origin !== service.url && protocol !== 'data:') errors.push(`request to ${request.url()}`)
  })
  await page.goto(`${service.url}/docs`)
  return { page, errors }
}

async function authorize(page: Page, token: string): Promise<void> {
  await page.getByRole('button', { name: 'Authorize' }).click()
  const dialog = page.locator('.dialog-ux')
  await dialog.getByRole('textbox').fill(token)
  await dialog.getByRole('button', { name: 'Apply credentials' }).click()
  await dialog.getByRole('button', { name: 'Close' }).first().click()
}

/** Executes an operation with its default values, and returns the response on the page. */
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

t.test('Try it out: the rows with every digit', async (t) => {
  const { page, errors } = await openPage()
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
    t.strictSame(parseExact(body), parseExact(text), 'response of the default connection')
  }
  const portfolio = page.locator('[id$="listPortfolioTransactions"]')
  const example = portfolio.locator('.responses-wrapper .example').first()
  t.match(await example.innerText(), /"titles": 0\.000000000000000000000000000001,/)
  t.strictSame(errors, [], 'no error, no violation of the policy, no other server')
})

t.test('reload: the token is gone, and the page shows the 401', async (t) => {
  const { page, errors } = await openPage()
  await authorize(page, DEMO_TOKEN)
  await page.reload()
  const { status, body } = await tryOut(page, 'listAssetsTransferOrders')
  t.match(status, /^401/)
  t.equal(JSON.parse(body).code, 'missing_credentials')
  t.equal(errors.length, 1, 'the 401 itself')
})

t.test('content security policy: no frames, no foreign scripts', async (t) => {
  const { headers } = await service.get('/docs')
  const policy = String(headers.get('content-security-policy'))
  t.notMatch(policy, /unsafe|https?:|\*/)
  t.match(policy, /default-src 'none';.*frame-ancestors 'none'/)
  t.equal(headers.get('x-content-type-options'), 'nosniff')
  t.equal((await service.get('/docs/yaml')).status, 404, 'YAML would round the numbers')
})

t.test('tokens in the document: those of the sample data only', async (t) => {
  const { text } = await service.get('/openapi.json')
  const tokens = new Set(text.match(/idq_\w+|DEMO[A-Z]+\d/g))
  t.strictSame([...tokens], [DEMO.wealth.connections.small.token])
})

t.test('files of the page: compressed, and 304 for one that the client has', async (t) => {
  const names = ['page.css', 'page.js', 'swagger-ui.css', 'index.css', 'swagger-ui-bundle.js']
  const files = ['/openapi.json', '/docs', ...names.map((name) => `/docs/static/${name}`)]
  for (const path of files) {
    const texts = new Set<string>()
    for (const encoding of ['br', 'gzip', 'identity', 'zstd']) {
      const response = await service.get(path, { headers: { 'accept-encoding': encoding } })
      const expected = ['br', 'gzip'].includes(encoding) ? encoding : null
      t.equal(response.headers.get('content-encoding'), expected, `${path} in ${encoding}`)
      texts.add(response.text)
      const headers = { 'if-none-match': String(response.headers.get('etag')) }
      t.equal((await service.get(path, { headers })).status, 304)
    }
    t.equal(texts.size, 1, 'one text')
  }
  t.equal((await fetch(`${service.url}/docs/`)).url, `${service.url}/docs`)
  t.equal((await service.get('/docs/static/package.json')).status, 404)
})

t.test('DOCS_PAGE=false: 404 instead of the page, and the document', async (t) => {
  const { get } = await startService(t, { environment: { DOCS_PAGE: 'false' } })
  for (const path of ['/docs', '/docs/', '/docs/json', '/docs/static/page.js']) {
    t.equal((await get(path)).status, 404, path)
  }
  t.equal((await get('/openapi.json')).status, 200)
})
