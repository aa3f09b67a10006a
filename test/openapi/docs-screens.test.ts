import type { Page } from 'playwright-core'
import t from 'tap'
import { launchChromium } from '../support/chromium.ts'
import { startService } from '../support/service.ts'
import { DESK, newDocsPage, PHONE } from './docs-page.ts'

const browser = await launchChromium(t)
const service = await startService(t)

/** Address at this time. Then waits for two frames, because the browser moves the focus in the next one. */
const address = (page: Page) =>
  page.evaluate<string>(`new Promise((end) => {
    const { href } = location
    requestAnimationFrame(() => requestAnimationFrame(() => end(href)))
  })`)

/** Finds parts of names in tables, such as `Items` of `totalItems`, that are on two lines. */
const BROKEN_NAMES = `[...document.querySelectorAll('main > .scroll :is(code, a)')]
  .flatMap(({ childNodes }) => [...childNodes].filter(({ data }) => /^[A-Za-z_]+$/.test(data)))
  .filter((text) => {
    const range = document.createRange()
    range.selectNodeContents(text)
    return range.getClientRects().length > 1
  })
  .map(({ data }) => data)`

for (const [name, screen, limit] of [
  ['1280 pixels', DESK, 3_000],
  ['phone', PHONE, 4_400],
] as const) {
  const { page, errors, open } = await newDocsPage(t, browser, screen)

  t.test(`${name}: an opened operation is short, nothing overflows, anchors work`, async (t) => {
    const overflow = (page: Page) =>
      page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')
    const path = '/docs#/Transactions/listPortfolioTransactions'
    await open(`${service.url}${path}`)
    const operation = page.locator('[id$="listPortfolioTransactions"]')
    await operation.locator('.response-col_status').last().waitFor()
    const box = await operation.boundingBox()
    t.ok(box && box.height < limit, `${box?.height} pixels`)
    t.equal(await overflow(page), 0)
    const isWide = '(box) => box.scrollWidth > box.clientWidth'
    const tables = "[...document.querySelectorAll('main > .scroll')]"
    t.equal(await page.evaluate(`${tables}.filter(${isWide}).length`), 0, 'wide tables')
    t.strictSame(await page.evaluate(BROKEN_NAMES), [], 'no line ends within a part of a name')
    const code = await operation.locator('.samples code').boundingBox()
    const copy = await operation.locator('.samples .copy-to-clipboard').boundingBox()
    t.ok(code && copy && code.x + code.width <= copy.x, 'the button to copy covers no code')
    t.match(await operation.locator('.samples code').innerText(), `${service.url}/api/v1/`)
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
      'List account trans': /#\/Transactions\/listAccountTransactions$/,
    }
    for (const [words, url] of Object.entries(found)) {
      // Throttling costs processor time, above all while an operation renders.
      await throttle(screen === PHONE && !words.startsWith('List') ? 6 : 1)
      for (const by of ['click', 'Enter']) {
        await page.evaluate('location.hash = "top"')
        await address(page)
        await search.fill(words)
        if (by === 'click') await page.locator('#results a').first().click()
        else await search.press('Enter')
        t.match(await address(page), url, `${by}: at once, without an animation`)
      }
    }
    await page.locator('[id$="listAccountTransactions"] .responses-wrapper').waitFor()
    await search.fill('')
    const link = page.locator('#contents').getByRole('link', { name: 'Exact decimals' })
    if (screen === PHONE) await page.locator('#contents summary').click()
    await link.click()
    t.match(await address(page), /#exact-decimals$/)
    t.equal(await page.locator(':target').innerText(), 'Exact decimals')
    t.strictSame(errors, [])
  })

  t.test(`${name}: print without navigation, focus visible in dark mode`, async (t) => {
    await page.emulateMedia({ colorScheme: 'dark' })
    const operation = page.locator('.opblock-summary-control').last()
    await operation.focus()
    // A key makes the browser show the focus.
    await page.keyboard.press('Shift+Tab')
    await page.keyboard.press('Tab')
    const outline = await operation.evaluate('getComputedStyle(document.activeElement).outline')
    t.match(outline, 'rgb(122, 180, 255)')
    await page.emulateMedia({ media: 'print' })
    t.notOk(await page.locator('nav').isVisible())
    await page.locator('html:not(.dark-mode)').waitFor()
  })
}
