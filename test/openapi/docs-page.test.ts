import http from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { DEMO } from '../../seeds/sample-data.ts'
import { EXACT_JSON } from '../../src/http/representation.ts'
import { ProblemCodes } from '../../src/schemas/problem.ts'
import { launchChromium } from '../support/chromium.ts'
import { parseExact } from '../support/exact-json.ts'
import { startService } from '../support/service.ts'
import { DESK, newDocsPage } from './docs-page.ts'
import { DEMO_CONNECTION, DEMO_TOKEN, startSeededService } from './seeded-service.ts'

const browser = await launchChromium(t)
const { token: DEMO_CONNECTION_TOKEN } = DEMO.wealth.connections.small
const environment = { DEMO_APP_TOKEN: DEMO_TOKEN, DEMO_CONNECTION_TOKEN }
const service = await startSeededService(t, { environment })
/** Without demo tokens, as in production. */
const production = await startService(t)
const { page, errors, open } = await newDocsPage(t, browser, DESK)

async function authorize(token: string): Promise<void> {
  await page.getByRole('button', { name: 'Authorize' }).click()
  const dialog = page.locator('.dialog-ux')
  await dialog.getByRole('textbox').fill(token)
  await dialog.getByRole('button', { name: 'Apply credentials' }).click()
  await dialog.getByRole('button', { name: 'Close' }).first().click()
}

/** Executes an operation with the values of the page, and returns the response on the page. */
async function tryOut(operationId: string) {
  const operation = page.locator(`[id$="${operationId}"]`)
  await operation.locator('.opblock-summary-control').click()
  await operation.getByRole('button', { name: 'Try it out' }).click()
  await operation.getByRole('button', { name: 'Execute' }).click()
  const live = operation.locator('.live-responses-table')
  const status = await live.locator('.response .response-col_status').innerText()
  const body = await live.locator('.response .highlight-code code').first().innerText()
  const example = await operation.locator('.responses-wrapper .example').first().innerText()
  const box = (part: string) => live.locator(`.highlight-code > ${part}`).first().boundingBox()
  const code = await box('.microlight')
  for (const button of ['.copy-to-clipboard', '.download-contents']) {
    const { y, height } = (await box(button)) ?? { y: Number.NaN, height: 0 }
    t.ok(code && y + height <= code.y, `${button} covers no code`)
  }
  // An open operation slows all others down.
  await operation.locator('.opblock-summary-control').click()
  return { status, body, example }
}

t.test('Try it out: the rows with every digit', async (t) => {
  await open(`${service.url}/docs`)
  const operations = {
    listPortfolioTransactions: 'portfolios/transactions',
    listAccountTransactions: 'accounts/transactions',
    listAssetsTransferOrders: 'assets-transfer',
  }
  for (const [operationId, request] of Object.entries(operations)) {
    const { status, body, example } = await tryOut(operationId)
    t.match(status, /^200/, operationId)
    if (operationId === 'listPortfolioTransactions')
      t.match(example, /"titles": 0\.000000000000000000000000000001,/)
    const { text } = await service.get(`${DEMO_CONNECTION}/${request}`, { token: DEMO_TOKEN })
    t.strictSame(parseExact(body), parseExact(text), 'response of the default connection')
  }
  t.strictSame(errors, [], 'no error, no violation of the policy, no other server')
})

t.test('Try it out: since with decimals as strings, version with 200 and 412', async (t) => {
  // Uses the page of the test above: loading it again takes seconds.
  const operation = page.locator('[id$="listPortfolioTransactions"]')
  await operation.locator('.opblock-summary-control').click()
  await operation.getByRole('button', { name: 'Clear' }).click()
  await operation.getByPlaceholder('since', { exact: true }).fill('start')
  await operation.getByRole('combobox').first().selectOption(EXACT_JSON)
  await operation.getByRole('button', { name: 'Execute' }).click()
  const live = operation.locator('.live-responses-table .highlight-code code').first()
  t.match(JSON.parse(await live.innerText()), { hasMore: false })
  t.match(await live.innerText(), '"406.20"')
  t.strictSame(errors, [])

  const path = `${DEMO_CONNECTION}/portfolios/transactions`
  const { headers } = await service.get(path, { token: DEMO_TOKEN })
  const version = String(headers.get('data-version'))
  await operation.getByPlaceholder('since', { exact: true }).fill('')
  for (const [sent, status] of [
    [version, '200'],
    [`${version}0`, '412'],
  ] as const) {
    await operation.getByPlaceholder('version', { exact: true }).fill(sent)
    const request = page.waitForRequest(/portfolios/)
    await operation.getByRole('button', { name: 'Execute' }).click()
    t.equal(new URL((await request).url()).search, `?version=${sent}`)
    const response = operation.locator('.live-responses-table .response')
    await response.locator('.response-col_status', { hasText: status }).waitFor()
    t.match(await live.innerText(), status === '200' ? '"406.20"' : '"data_changed"')
  }
})

t.test(
  'without demo tokens: none in page and document, and a reload forgets the own one',
  async (t) => {
    const files = ['/docs', '/docs/static/page.js', '/openapi.json']
    const texts = await Promise.all(files.map(async (path) => (await production.get(path)).text))
    t.notMatch(texts.join(), /idq_\w+|DEMO[A-Z]+\d|127[.]0[.]0[.]1|localhost/)
    await open(`${production.url}/docs`)
    await authorize(DEMO_TOKEN)
    await page.reload()
    const operation = page.locator('[id$="listAssetsTransferOrders"]')
    await operation.locator('.opblock-summary-control').click()
    await operation.getByRole('button', { name: 'Try it out' }).click()
    await operation.getByPlaceholder('token', { exact: true }).fill('unknown')
    await operation.getByRole('button', { name: 'Execute' }).click()
    const body = operation.locator('.live-responses-table .highlight-code code').first()
    t.equal(JSON.parse(await body.innerText()).code, 'missing_credentials')
    t.equal(errors.length, 1, 'the 401 itself')
  },
)

t.test('links of the page: each anchor exists once, also one for each error code', async (t) => {
  const { text } = await service.get('/docs')
  const ids = [...text.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id)
  t.equal(new Set(ids).size, ids.length)
  const targets = [...text.matchAll(/href="#([^/"][^"]*)"/g)].map(([, id]) => id)
  t.strictSame(
    targets.filter((id) => !ids.includes(id)),
    [],
  )
  for (const code of Object.keys(ProblemCodes)) t.ok(targets.includes(code), code)
})

/** Starts a proxy that removes /investments from the path and refuses other paths. */
async function startProxy(target: string): Promise<string> {
  const prefix = /^\/investments(?=\/)/
  const proxy = http.createServer(({ url = '', headers }, response) => {
    if (!prefix.test(url)) {
      response.writeHead(404).end()
      return
    }
    http.get(target + url.replace(prefix, ''), { headers }, (answer) => {
      response.writeHead(Number(answer.statusCode), answer.headers)
      answer.pipe(response)
    })
  })
  await new Promise<void>((done) => proxy.listen(0, '127.0.0.1', done))
  t.teardown(() => proxy.close())
  return `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
}

t.test('proxy that removes a path prefix: page, links and Try it out', async (t) => {
  const PUBLIC_URL = 'https://example.com/investments'
  const { databaseUrl } = service
  const { url } = await startService(t, {
    databaseUrl,
    environment: { ...environment, PUBLIC_URL },
  })
  const origin = await startProxy(url)
  await open(`${origin}/investments/`)
  t.equal(page.url(), `${origin}/investments/docs`)
  await page.locator('#contents').getByRole('link', { name: 'Exact decimals' }).click()
  const target = await page.evaluate('location.href')
  t.equal(target, `${origin}/investments/docs#exact-decimals`)
  const sent = page.waitForRequest(/portfolios/)
  const { status, body } = await tryOut('listPortfolioTransactions')
  t.match(status, /^200/)
  t.match(body, '406.20')
  t.equal((await sent).url(), `${origin}/investments${DEMO_CONNECTION}/portfolios/transactions`)
  t.strictSame(errors, [], 'no failed request')
  const redirected = await fetch(`${origin}/investments/docs/`)
  t.equal(redirected.url, `${origin}/investments/docs`)
  const document = await fetch(`${origin}/investments/openapi.json`)
  t.strictSame(JSON.parse(await document.text()).servers, [{ url: PUBLIC_URL }])
})

t.test('content security policy: no frames, no foreign scripts', async (t) => {
  const { headers } = await service.get('/docs')
  const policy = String(headers.get('content-security-policy'))
  t.notMatch(policy, /unsafe|https?:|\*/)
  t.match(policy, /default-src 'none';.*frame-ancestors 'none'/)
  t.equal(headers.get('x-content-type-options'), 'nosniff')
  t.equal((await service.get('/docs/yaml')).status, 404, 'YAML would round the numbers')
})

t.test('files of the page: compressed, and 304 for one that the client has', async (t) => {
  const names = ['page.css', 'page.js', 'plugins.js', 'swagger-ui.css', 'swagger-ui-bundle.js']
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
  for (const path of ['/', '/docs', '/docs/', '/docs/json', '/docs/static/page.js']) {
    t.equal((await get(path)).status, 404, path)
  }
  t.equal((await get('/openapi.json')).status, 200)
})
