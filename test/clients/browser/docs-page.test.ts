import { execFile } from 'node:child_process'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { promisify } from 'node:util'
import type { Request, Route } from 'playwright-core'
import t from 'tap'
import { DEMO } from '../../../seeds/sample-data.ts'
import { MEDIA_TYPES } from '../../../src/schemas/list.ts'
import { parseExact } from '../../support/exact-json.ts'
import { DEMO_CONNECTION, DEMO_TOKEN, startSeededService } from '../../support/seeded-service.ts'
import { startService } from '../../support/service.ts'
import { launchChromium } from './chromium.ts'
import { DESK, newDocsPage } from './docs-page.ts'

const browser = await launchChromium(t)
const { token: DEMO_CONNECTION_TOKEN } = DEMO.wealth.connections.small
const environment = { DEMO_TOKENS: `${DEMO_TOKEN},${DEMO_CONNECTION_TOKEN}` }
const service = await startSeededService(t, { environment })
/** Without demo tokens, as in production. */
const production = await startService(t)
const { page, errors, open } = await newDocsPage(t, browser, DESK)

const operationOf = (operationId: string) => page.locator(`#${operationId}`)

/** Sends a request with the values of the form, and returns what the page shows. */
async function send(operationId: string) {
  const operation = operationOf(operationId)
  if ((await operation.getAttribute('open')) === null)
    await operation.locator('summary').first().click()
  const example = await operation.locator('.response pre:visible').first().innerText()
  const answer = page.waitForResponse(/\/api\//)
  await operation.getByRole('button', { name: 'Send request' }).click()
  await answer
  const status = operation.getByRole('status').filter({ hasText: /^\d{3} / })
  await status.waitFor()
  const body = operation.locator('.response pre:visible').first()
  return { status: await status.innerText(), body: await body.innerText(), example }
}

const field = (operationId: string, name: string) =>
  operationOf(operationId).getByLabel(new RegExp(`^${name} `))

/** The tokens are entered once, above the operations. */
const token = (name: string) => page.locator('#tokens').getByLabel(new RegExp(`^${name} `))

t.test('request: the rows with every digit', async (t) => {
  await open(`${service.url}/docs`)
  const operations = {
    listPortfolioTransactions: 'portfolios/transactions',
    listAccountTransactions: 'accounts/transactions',
    listAssetsTransferOrders: 'assets-transfer',
  }
  for (const [operationId, request] of Object.entries(operations)) {
    const { status, body, example } = await send(operationId)
    t.match(status, /^200 OK · \d+ ms · [\d,]+ B Download$/, operationId)
    if (operationId === 'listPortfolioTransactions')
      t.match(example, /"titles": 0\.000000000000000000000000000001,/)
    const { text } = await service.get(`${DEMO_CONNECTION}/${request}`, { token: DEMO_TOKEN })
    t.strictSame(parseExact(body), parseExact(text), 'response of the default connection')
    t.match(body, /\n {6}"\w+": |\n {4}"\w+": /, 'indented')
  }
  t.strictSame(errors, [], 'no error, no violation of the policy, no other server')
})

t.test('request: since with decimals as strings, version with 200 and 412, CSV', async (t) => {
  const id = 'listPortfolioTransactions'
  await field(id, 'since').fill('start')
  await field(id, 'Accept').selectOption({ label: 'JSON, decimals as strings' })
  const { body: changes } = await send(id)
  t.match(JSON.parse(changes), { hasMore: false })
  t.match(changes, '"406.20"')
  t.strictSame(errors, [])

  const path = `${DEMO_CONNECTION}/portfolios/transactions`
  const { headers } = await service.get(path, { token: DEMO_TOKEN })
  const version = String(headers.get('data-version'))
  await operationOf(id).getByRole('button', { name: 'Clear' }).click()
  t.equal(await field(id, 'since').inputValue(), '')
  for (const [sent, status] of [
    [version, 200],
    [`${version}0`, 412],
  ] as const) {
    await field(id, 'version').fill(sent)
    const request = page.waitForRequest(/portfolios/)
    const shown = await send(id)
    t.equal(new URL((await request).url()).search, `?version=${sent}`)
    t.match(shown.status, new RegExp(`^${status} `))
    t.match(shown.body, status === 200 ? /406\.20,/ : '"data_changed"')
  }
  await field(id, 'version').fill('')
  await field(id, 'Accept').selectOption(MEDIA_TYPES.csv)
  t.match((await send(id)).body, /^"?transactionId/)
  const download = page.waitForEvent('download')
  await operationOf(id).getByRole('link', { name: 'Download' }).click()
  t.equal((await download).suggestedFilename(), 'response.csv')
})

t.test(
  'an error: the response links to its cause and remedy, also of each parameter',
  async (t) => {
    const id = 'listPortfolioTransactions'
    await open(`${service.url}/docs#${id}`)
    await field(id, 'limit').fill('0')
    await field(id, 'from').fill('2025-02-30')
    const { status } = await send(id)
    t.match(status, /^400 /)
    const help = operationOf(id).locator('.response .help')
    const codes = await help.getByRole('link').allInnerTexts()
    t.same(codes.sort(), ['invalid_format', 'invalid_request', 'out_of_range'])
    for (const code of codes) {
      await help.getByRole('link', { name: code }).click()
      t.equal(await page.locator(':target').getAttribute('id'), code)
    }
    await page.locator('#cursor_expired').click()
    const operations = page.locator('#cursor_expired ~ p', { hasText: 'Operations:' })
    await operations.getByRole('link').first().click()
    t.match(page.url(), /#listPortfolioTransactions$/, 'and back')
  },
)

t.test('contact: the address of CONTACT_URL in the section Support', async (t) => {
  const CONTACT_URL = 'https://support.example/investments'
  const { url } = await startService(t, { environment: { CONTACT_URL } })
  await open(`${url}/docs`)
  t.equal(await page.locator('#support + p').getByRole('link').getAttribute('href'), CONTACT_URL)
  await open(`${service.url}/docs`)
  t.equal(await page.locator('#contact').count(), 0, 'without the setting')
})

t.test('settings: the page shows the largest limit and the address of its service', async (t) => {
  const { url } = await startService(t, {
    environment: { MAX_LIMIT: '2500', PUBLIC_URL: 'https://api.example/investments' },
  })
  await open(`${url}/docs#listPortfolioTransactions`)
  const operation = operationOf('listPortfolioTransactions')
  const limit = page.locator('[id="listPortfolioTransactions.limit.text"]')
  t.match(await limit.innerText(), /^Rows of a page, 1 to 2500, in digits.*Default: 1000[.]$/)
  const samples = operation.locator('.samples pre:visible')
  t.match(await samples.innerText(), 'https://api.example/investments/api/v1/')
  t.match(await page.locator('main').innerText(), 'https://api.example/investments/api/v1/')
  t.strictSame(errors, [])
})

t.test('a browser that blocks cookies: the page works', async (t) => {
  const blocked = await newDocsPage(t, browser, DESK)
  // Chromium throws this error when a site may store nothing.
  await blocked.page.addInitScript(() => {
    const get = () => {
      throw new DOMException('Access is denied for this document.', 'SecurityError')
    }
    Object.defineProperty(globalThis, 'localStorage', { get })
  })
  const id = 'listAccountTransactions'
  await blocked.open(`${service.url}/docs#${id}`)
  const operation = blocked.page.locator(`#${id}`)
  await operation.getByRole('button', { name: 'Python' }).first().click()
  await blocked.page.getByRole('button', { name: 'Dark theme' }).click()
  await operation.getByRole('button', { name: 'Send request' }).click()
  await operation.getByRole('status').filter({ hasText: /^200 / }).waitFor()
  t.strictSame(blocked.errors, [])
})

t.test('first sample: it runs as it is copied, with the demo tokens alone', async (t) => {
  await open(`${service.url}/docs`)
  const sample = await page.locator('#first-sample pre').innerText()
  const { stdout } = await promisify(execFile)('sh', ['-c', sample])
  t.match(JSON.parse(stdout), { limit: 1, page: 0 })
  await open(`${production.url}/docs`)
  t.match(await page.locator('#first-sample pre').innerText(), /Bearer \$APP_TOKEN"/)
})

t.test(
  'start: each module is requested by the page itself, and the settings are small',
  async (t) => {
    const requested: string[] = []
    const listener = (request: Request) => requested.push(request.url())
    page.on('request', listener)
    await open(`${production.url}/docs`)
    page.off('request', listener)
    const modules = requested.filter((url) => url.endsWith('.js'))
    const { text } = await production.get('/docs')
    for (const url of modules) {
      const path = new URL(url).pathname.slice(1)
      t.match(text, `<link rel="modulepreload" href="${path}">`, path)
    }
    const settings = await production.get('/docs/static/settings.json')
    t.same(JSON.parse(settings.text), { maximumLimit: 10_000 })
    t.notOk(requested.some((url) => url.endsWith('openapi.json')))
  },
)

t.test('an anchor that is no text, or no section: the page works', async (t) => {
  for (const hash of ['#%zz', '#nothing']) {
    await open(`${service.url}/docs${hash}`)
    await page.getByRole('searchbox').fill('pagination')
    await page.locator('#results a[href="#pagination"]').waitFor()
    t.match((await send('listAssetsTransferOrders')).status, /^200 OK/, hash)
    t.strictSame(errors, [], hash)
  }
})

const NO_SETTINGS: Record<string, (route: Route) => unknown> = {
  'its request fails': (route) => route.abort(),
  'its request hangs': () => undefined,
}
for (const [reason, respond] of Object.entries(NO_SETTINGS))
  t.test(`no settings, ${reason}: the page sends requests to its own address`, async (t) => {
    const id = 'listAssetsTransferOrders'
    await page.route('**/settings.json', respond)
    t.teardown(() => page.unroute('**/settings.json'))
    await open(`${service.url}/docs#${id}`)
    await token('Authorization').fill(DEMO_TOKEN)
    await token('token').fill(DEMO_CONNECTION_TOKEN)
    t.match((await send(id)).status, /^200 OK/)
    t.notOk(await page.getByText('public demo tokens').isVisible())
  })

t.test('while the request of the settings hangs: navigation, search and theme work', async (t) => {
  const waiting = await browser.newPage(DESK)
  t.teardown(() => waiting.close())
  waiting.setDefaultTimeout(20_000)
  await waiting.route('**/settings.json', () => undefined)
  // The request never ends, so that a slow test does not check the page after the time limit.
  await waiting.addInitScript('AbortSignal.timeout = () => new AbortController().signal')
  await waiting.goto(`${service.url}/docs#listAccountTransactions`)
  await waiting.locator('#listAccountTransactions[open]').waitFor()
  await waiting.getByRole('searchbox').fill('pagination')
  await waiting.locator('#results a[href="#pagination"]').click()
  t.equal(await waiting.locator(':target').getAttribute('id'), 'pagination')
  await waiting.getByRole('searchbox').fill('')
  await waiting.locator('#contents').getByRole('link', { name: 'Exact decimals' }).click()
  t.equal(await waiting.locator(':target').getAttribute('id'), 'exact-decimals')
  await waiting.getByRole('button', { name: 'Dark theme' }).click()
  const scheme = await waiting.evaluate('getComputedStyle(document.documentElement).colorScheme')
  t.equal(scheme, 'dark')
  t.equal(await waiting.locator('main[data-settings]').count(), 0, 'the request still hangs')
})

t.test('parameters: place, type and if they are required', async (t) => {
  const id = 'listPortfolioTransactions'
  await open(`${service.url}/docs#${id}`)
  const about = (name: string) =>
    operationOf(id).locator(`label[for="${id}.${name}"] small`).innerText()
  t.equal(await about('from'), 'query, string (date)')
  const small = page.locator('label[for="tokens.token"] small')
  t.equal(await small.innerText(), 'path, string, required')
  t.equal(await about('If-None-Match'), 'header, string')
})

t.test('samples: one block with the values of the form, and no token', async (t) => {
  const id = 'listAccountTransactions'
  await open(`${service.url}/docs#${id}`)
  await field(id, 'from').fill('2024-05-01')
  await field(id, 'limit').fill('2')
  await field(id, 'X-Client-Trace-ID').fill("it's me")
  const operation = operationOf(id)
  const shown = operation.locator('.samples pre:visible')
  const expected = {
    curl: `'X-Client-Trace-ID: it'\\''s me' \\\n  "${service.url}/api/v1/queries/connections/$CONNECTION_TOKEN/accounts/transactions?from=2024-05-01&limit=2"`,
    'Node.js': 'accountTransactions({ from: "2024-05-01", limit: 2 })',
    Python: 'account_transactions(from_="2024-05-01", limit=2)',
  }
  for (const [label, part] of Object.entries(expected)) {
    await operation.getByRole('button', { name: label, exact: true }).click()
    t.equal(await shown.count(), 1)
    const text = await shown.innerText()
    t.ok(text.includes(part), `${label}: ${text}`)
    t.match(text, service.url)
    for (const token of [DEMO_TOKEN, DEMO_CONNECTION_TOKEN]) t.notMatch(text, token)
  }
  await open(`${service.url}/docs#listAssetsTransferOrders`)
  const others = operationOf('listAssetsTransferOrders').locator('.samples pre:visible')
  t.match(await others.innerText(), 'import os', 'the same language in all operations, and later')
  t.strictSame(errors, [])
})

t.test('code of guide and operations: one form, with colours and a button to copy', async (t) => {
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  // The code of an operation has colours when it opens.
  await page.evaluate(
    `for (const each of document.querySelectorAll('main details')) each.open = true`,
  )
  const blocks = page.locator('.code')
  t.equal(await page.locator('main pre').count(), await page.locator('.code pre').count())
  for (const block of await blocks.all()) {
    t.equal(await block.getByRole('button', { name: 'Copy', includeHidden: true }).count(), 1)
    t.ok((await block.locator('code > span').count()) > 0, 'colours')
  }
  const block = blocks.filter({ hasText: 'import java.net.URI' })
  await block.getByRole('button', { name: 'Copy' }).click()
  await block.getByRole('button', { name: 'Copied' }).waitFor()
  const copied = await page.evaluate<string>('navigator.clipboard.readText()')
  t.equal(copied, await block.locator('code').evaluate(({ textContent }) => textContent))
  t.match(copied, service.url)
})

t.test(
  'an operation as Markdown: parameters, the request of its form, fields and statuses',
  async (t) => {
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    const id = 'listAccountTransactions'
    await open(`${service.url}/docs#${id}`)
    await operationOf(id).getByRole('button', { name: 'curl', exact: true }).click()
    await field(id, 'limit').fill('7')
    await operationOf(id).getByRole('button', { name: 'Copy as Markdown' }).click()
    await operationOf(id).getByRole('button', { name: 'Copied' }).waitFor()
    const copied = await page.evaluate<string>('navigator.clipboard.readText()')
    for (const part of [
      /^# List account transactions\n/,
      /^GET `\/api\/v1\/queries\/connections\/\{token\}\/accounts\/transactions`$/m,
      /^- `limit` query, string Rows of a page/m,
      /^```\ncurl [^`]*accounts\/transactions\?limit=7"\n```$/m,
      /^- `movementId` string \(uuid\) Identifier/m,
      /^- `401` .*\[`expired_token`\]\(http.*#expired_token\)/m,
    ])
      t.match(copied, part)
    t.notMatch(copied, DEMO_TOKEN)
  },
)

t.test('without demo tokens: none in page and document, and a reload forgets them', async (t) => {
  const files = ['/docs', '/docs/static/page.js', '/docs/static/sandbox.js', '/openapi.json']
  const texts = await Promise.all(files.map(async (path) => (await production.get(path)).text))
  t.notMatch(texts.join(), /idq_\w+|DEMO[A-Z]+\d|127[.]0[.]0[.]1|localhost/)
  t.equal((await production.get('/docs/static/stories.json')).status, 404)
  await open(`${production.url}/docs#listPortfolioTransactions`)
  const id = 'listAssetsTransferOrders'
  const button = operationOf('listPortfolioTransactions').getByRole('button', {
    name: 'Send request',
  })
  await button.click()
  await page.locator('#tokens input:focus').waitFor()
  t.ok(await token('token').isVisible(), 'Send shows the token that is missing')
  await token('Authorization').fill(DEMO_TOKEN)
  await token('token').fill('unknown')
  t.equal(JSON.parse((await send(id)).body).code, 'invalid_token', 'all operations share them')
  await page.reload()
  await token('token').fill('unknown')
  t.equal(JSON.parse((await send(id)).body).code, 'missing_credentials')
  t.equal(errors.length, 2, 'the 401s themselves')
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

t.test('proxy that removes a path prefix: page, links and requests', async (t) => {
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
  const { status, body } = await send('listPortfolioTransactions')
  t.match(status, /^200/)
  t.match(body, '406.20')
  t.equal((await sent).url(), `${origin}/investments${DEMO_CONNECTION}/portfolios/transactions`)
  t.strictSame(errors, [], 'no failed request')
  const redirected = await fetch(`${origin}/investments/docs/`)
  t.equal(redirected.url, `${origin}/investments/docs`)
  const document = await fetch(`${origin}/investments/openapi.json`)
  t.strictSame(JSON.parse(await document.text()).servers, [{ url: PUBLIC_URL }])
})
