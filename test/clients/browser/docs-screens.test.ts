import type { Page } from 'playwright-core'
import t from 'tap'
import { DEMO } from '../../../seeds/sample-data.ts'
import { DEMO_TOKEN, startSeededService } from '../../support/seeded-service.ts'
import { launchChromium } from './chromium.ts'
import { DESK, newDocsPage, PHONE } from './docs-page.ts'

const browser = await launchChromium(t)
const { token: DEMO_CONNECTION_TOKEN } = DEMO.wealth.connections.small
const environment = { DEMO_TOKENS: `${DEMO_TOKEN},${DEMO_CONNECTION_TOKEN}` }
const service = await startSeededService(t, { environment })

/** Address at this time. Then waits for two frames, because the browser moves the focus in the next one. */
const address = (page: Page) =>
  page.evaluate<string>(`new Promise((end) => {
    const { href } = location
    requestAnimationFrame(() => requestAnimationFrame(() => end(href)))
  })`)

/** Finds words in the visible elements that are on two lines, such as `Items` of `totalItems`. */
const brokenWords = (page: Page, selector: string, word: string) =>
  page.evaluate<string[]>(`[...document.querySelectorAll('${selector}')]
  .filter((element) => element.checkVisibility())
  .flatMap(({ childNodes }) => [...childNodes])
  .filter((node) => node.nodeType === Node.TEXT_NODE)
  .flatMap((node) => [...node.data.matchAll(${word})].map(({ 0: text, index }) => {
    const range = document.createRange()
    range.setStart(node, index)
    range.setEnd(node, index + text.length)
    return { text, lines: range.getClientRects().length }
  }))
  .filter(({ lines }) => lines > 1)
  .map(({ text }) => text)`)

const screens = [
  { name: '1280 pixels', screen: DESK, docs: await newDocsPage(t, browser, DESK) },
  { name: 'phone', screen: PHONE, docs: await newDocsPage(t, browser, PHONE) },
]

for (const { name, screen, docs } of screens) {
  const { page, errors, open } = docs

  t.test(`${name}: nothing overflows, anchors work`, async (t) => {
    const overflow = (page: Page) =>
      page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')
    // The address of earlier releases.
    await open(`${service.url}/docs#/Transactions/listPortfolioTransactions`)
    const operation = page.locator('#listPortfolioTransactions')
    await operation.getByRole('button', { name: 'Send request' }).click()
    await operation.getByText(/^200 OK/).waitFor()
    t.equal(await overflow(page), 0)
    const isWide = '(box) => box.scrollWidth > box.clientWidth'
    const tables = "[...document.querySelectorAll('.scroll, select')]"
    t.equal(await page.evaluate(`${tables}.filter(${isWide}).length`), 0, 'wide tables')
    const names = await brokenWords(page, '.scroll :is(code, a)', '/^[A-Za-z_]+$/g')
    t.strictSame(names, [], 'no line ends within a part of a name')
    const values = await brokenWords(
      page,
      '.response > pre code, .response > pre span',
      '/[\\w.-]+/g',
    )
    t.strictSame(values, [], 'no line ends within a value')
    const code = await operation.locator('.samples code').first().boundingBox()
    const copy = await operation.locator('.samples .bar').boundingBox()
    t.ok(code && copy && copy.y + copy.height <= code.y, 'the buttons cover no code')
    t.match(await operation.locator('.samples code').first().innerText(), `${service.url}/api/v1/`)
    await operation.getByRole('link', { name: 'cursor_expired' }).click()
    const heading = page.locator('h3#cursor_expired')
    t.match(await address(page), /#cursor_expired$/)
    await page.evaluate('new Promise((end) => setTimeout(() => requestAnimationFrame(end), 100))')
    const y = Number((await heading.boundingBox())?.y)
    t.ok(y >= 0 && y < 200, `${y} pixels from the top`)
    t.equal(await heading.locator('a').getAttribute('href'), '#cursor_expired')
    t.strictSame(errors, [])
  })

  t.test(`${name}: search and navigation lead to sections, fields and operations`, async (t) => {
    await open(`${service.url}/`)
    t.equal(page.url(), `${service.url}/docs`, '/ leads to /docs')
    const devTools = await page.context().newCDPSession(page)
    const throttle = (rate: number) => devTools.send('Emulation.setCPUThrottlingRate', { rate })
    const search = page.getByRole('searchbox')
    const found: Record<string, RegExp> = {
      expired_token: /#expired_token$/,
      retentionFrom: /#RetentionDetail[.]retentionFrom$/,
      'List account trans': /#listAccountTransactions$/,
      pagination: /#pagination$/,
      'rate limit': /#rate-limits$/,
      webhook: /#webhooks$/,
      cursor: /#cursor_expired$/,
      timeout: /#timeouts$/,
      currency: /#\w+[.]currency$|#currencies$/,
    }
    for (const [words, url] of Object.entries(found)) {
      // Throttling costs processor time.
      await throttle(screen === PHONE && words.includes('_') ? 6 : 1)
      for (const by of ['click', 'Enter']) {
        await page.evaluate('location.hash = "top"')
        await address(page)
        await search.fill(words)
        await page.locator('#found').filter({ hasText: 'result' }).waitFor()
        if (by === 'click') await page.locator('#results a').first().click()
        else await search.press('Enter')
        t.match(await address(page), url, `${by}: at once, without an animation`)
      }
    }
    await page.locator('#listAccountTransactions[open]').waitFor()
    await search.fill('')
    const link = page.locator('#contents').getByRole('link', { name: 'Exact decimals' })
    if (screen === PHONE) await page.locator('#contents summary').click()
    await link.click()
    t.match(await address(page), /#exact-decimals$/)
    t.equal(await page.locator(':target').innerText(), 'Exact decimals')
    t.strictSame(errors, [])
  })

  t.test(`${name}: results of a search have whole words`, async (t) => {
    await open(`${service.url}/docs`)
    for (const words of ['retention', 'rate limit', 'nextCursor', 'data']) {
      await page.getByRole('searchbox').fill(words)
      t.strictSame(await brokenWords(page, '#results a', '/\\w+/g'), [], words)
      const texts = await page.locator('main, main :is(td, p, li)').allTextContents()
      const known = new Set(texts.join(' ').split(/\s+/))
      const excerpts = (await page.locator('#results small').allTextContents()).join(' ')
      const cut = excerpts.split(/\s+/).filter((word) => word !== '…' && !known.has(word))
      t.strictSame(cut, [], `${words}: whole words`)
    }
    const status = page.locator('nav').getByRole('status')
    await page.getByRole('searchbox').fill('xyzzy')
    t.equal(await status.innerText(), 'No results')
    await page.getByRole('searchbox').fill('pagination')
    t.match(await status.innerText(), /^[1-9]\d* results?$/)
    await page.getByRole('searchbox').blur()
    await page.keyboard.press('Control+k')
    t.ok(await page.getByRole('searchbox').evaluate('document.activeElement.type === "search"'))
    await page.getByRole('searchbox').fill('transactions')
    await page.getByRole('searchbox').press('ArrowDown')
    await page.keyboard.press('ArrowDown')
    const second = page.locator('#results a').nth(1)
    const focused = await page.evaluate('document.activeElement.getAttribute("href")')
    t.equal(focused, await second.getAttribute('href'))
  })

  t.test(`${name}: the navigation marks the section on the screen`, async (t) => {
    await open(`${service.url}/docs#webhooks`)
    const current = page.locator('nav [aria-current]')
    await page.locator('nav a[href="#webhooks"][aria-current]').waitFor({ state: 'attached' })
    await page
      .locator('#exact-decimals')
      .evaluate('document.querySelector("#exact-decimals").scrollIntoView()')
    await page.locator('nav a[href="#exact-decimals"][aria-current]').waitFor({ state: 'attached' })
    t.equal(await current.count(), 1)
  })

  t.test(`${name}: lists error codes and fields while the reader is there`, async (t) => {
    await open(`${service.url}/docs#webhooks`)
    if (screen === PHONE) await page.locator('#contents summary').click()
    t.ok(await page.locator('#contents a[href="#listAccountTransactions"]').isVisible())
    const code = page.locator('#contents a[href="#expired_token"]')
    t.notOk(await code.isVisible())
    await page.locator('#contents a[href="#error-codes"]').click()
    await page.locator('nav a[href="#error-codes"][aria-current]').waitFor({ state: 'attached' })
    if (screen === PHONE) await page.locator('#contents summary').click()
    t.ok(await code.isVisible())
  })

  t.test(`${name}: an open operation has the fields of its rows, and Send in reach`, async (t) => {
    await open(`${service.url}/docs#listPortfolioTransactions`)
    const operation = page.locator('#listPortfolioTransactions')
    const button = operation.getByRole('button', { name: 'Send request' })
    const box = await button.boundingBox()
    const { height } = screen.viewport
    t.ok(box && box.y + box.height <= height, 'Send is on the screen that shows the title')
    t.ok(await operation.locator('[id="PortfolioTransaction.titles"]').isVisible())
    const types = page.locator('#PortfolioTransactionType')
    t.notOk(await types.isVisible(), 'the values are one step away')
    await operation.getByRole('link', { name: 'PortfolioTransactionType' }).click()
    t.ok(await types.isVisible())
    t.equal(await page.locator(':target').getAttribute('id'), 'PortfolioTransactionType')
    await page.locator('#fields').scrollIntoViewIfNeeded()
    await page
      .locator('main')
      .getByRole('link', { name: 'AssetsTransferOrder', exact: true })
      .last()
      .click()
    t.ok(await page.locator('[id="AssetsTransferOrder.isin"]').isVisible(), 'its operation opens')
    t.same(errors, [])
  })

  t.test(`${name}: after Send, the response is on the screen`, async (t) => {
    await open(`${service.url}/docs#listPortfolioTransactions`)
    const operation = page.locator('#listPortfolioTransactions')
    await operation.getByLabel(/^limit /).fill('0')
    await operation.getByRole('button', { name: 'Send request' }).click()
    const status = operation.getByRole('status').filter({ hasText: /^\d{3} / })
    await status.waitFor()
    const box = await status.boundingBox()
    t.ok(box && box.y >= 0 && box.y + box.height < screen.viewport.height, 'its status')
  })

  t.test(`${name}: a tab for each status, with the examples of its errors`, async (t) => {
    await open(`${service.url}/docs#listPortfolioTransactions`)
    const response = page.locator('#listPortfolioTransactions .response')
    const press = (name: string) => response.getByRole('button', { name, exact: true }).click()
    const shown = response.locator('pre:visible')
    await press('410')
    t.match(JSON.parse(await shown.innerText()), { status: 410, code: 'cursor_expired' })
    await response.getByRole('link', { name: 'cursor_expired' }).waitFor()
    await press('401')
    const codes = (await shown.allInnerTexts()).map((text) => JSON.parse(text).code)
    t.ok(codes.includes('expired_token') && codes.length > 1, codes.join())
    await press('304')
    t.equal(await shown.count(), 0, 'no body')
    await press('200')
    t.match(await shown.innerText(), '"items"')
    t.equal(await response.locator('[aria-pressed=true]').innerText(), '200')
  })

  t.test(
    `${name}: all operations, headers and examples open: no line ends within a name`,
    async (t) => {
      await open(`${service.url}/docs`)
      await page.evaluate(
        'for (const each of document.querySelectorAll("main details")) each.open = true',
      )
      const names = await brokenWords(page, '.scroll :is(code, a)', '/^[A-Za-z_]+$/g')
      t.strictSame(names, [])
      const width = 'document.documentElement.scrollWidth - document.documentElement.clientWidth'
      t.equal(await page.evaluate(width), 0, 'nothing overflows')
    },
  )

  t.test(`${name}: the theme of the reader or of the system`, async (t) => {
    const back = () => page.evaluate('getComputedStyle(document.documentElement).backgroundColor')
    const [white, dark] = ['rgb(255, 255, 255)', 'rgb(28, 32, 34)']
    await page.emulateMedia({ colorScheme: 'light' })
    await open(`${service.url}/docs`)
    const press = async (name: string) => {
      if (screen === PHONE) await page.locator('#contents summary').click()
      await page.getByRole('button', { name }).click()
    }
    t.equal(await back(), white)
    await press('Dark theme')
    t.equal(await back(), dark)
    await open(`${service.url}/docs`)
    t.equal(await back(), dark, 'kept')
    await press('Light theme')
    t.equal(await back(), white)
    await page.emulateMedia({ colorScheme: 'dark' })
    t.equal(await back(), dark, 'follows the system again')
    await page.emulateMedia({ colorScheme: null })
    t.strictSame(errors, [])
  })

  t.test(`${name}: print without navigation, focus visible in dark mode`, async (t) => {
    await open(`${service.url}/docs`)
    await page.emulateMedia({ colorScheme: 'dark' })
    const operation = page.locator('.operation > summary').last()
    await operation.focus()
    // A key makes the browser show the focus.
    await page.keyboard.press('Shift+Tab')
    await page.keyboard.press('Tab')
    const outline = await operation.evaluate('getComputedStyle(document.activeElement).outline')
    t.match(outline, 'rgb(122, 180, 255)')
    await page.keyboard.press('Enter')
    await page.locator('#listAssetsTransferOrders[open]').waitFor()
    await page.emulateMedia({ media: 'print' })
    t.notOk(await page.locator('nav').isVisible())
    const closed = page.locator('#listPortfolioTransactions form')
    t.ok((await closed.boundingBox())?.height, 'closed operations are printed')
    const back = await page.evaluate('getComputedStyle(document.documentElement).backgroundColor')
    t.equal(back, 'rgb(255, 255, 255)', 'light')
  })
}
