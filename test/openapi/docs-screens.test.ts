import type { Page } from 'playwright-core'
import t from 'tap'
import { launchChromium } from '../support/chromium.ts'
import { startService } from '../support/service.ts'
import { until } from '../support/until.ts'
import { DESK, openDocsPage, PHONE } from './docs-page.ts'

const browser = await launchChromium(t)
const service = await startService(t)

/** Waits for an address. */
const untilAt = (page: Page, address: RegExp) =>
  until(`the page is at ${address}`, async () =>
    address.test(String(await page.evaluate('location.href'))),
  )

for (const [name, screen, limit] of [
  ['1280 pixels', DESK, 3_000],
  ['phone', PHONE, 6_000],
] as const) {
  t.test(`${name}: an opened operation is short, nothing overflows, anchors work`, async (t) => {
    const overflow = (page: Page) =>
      page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')
    const path = '/docs#/Transactions/listPortfolioTransactions'
    const { page, errors } = await openDocsPage(t, browser, `${service.url}${path}`, screen)
    const operation = page.locator('[id$="listPortfolioTransactions"]')
    await operation.locator('.response-col_status').last().waitFor()
    const box = await operation.boundingBox()
    t.ok(box && box.height < limit, `${box?.height} pixels`)
    t.equal(await overflow(page), 0)
    t.match(await operation.locator('.samples code').innerText(), `${service.url}/api/v1/`)
    await operation.getByRole('link', { name: 'cursor_expired' }).click()
    const heading = page.locator('h3#cursor_expired')
    await untilAt(page, /#cursor_expired$/)
    await page.evaluate('new Promise((end) => setTimeout(() => requestAnimationFrame(end), 100))')
    const y = Number((await heading.boundingBox())?.y)
    t.ok(y >= 0 && y < 200, `${y} pixels from the top`)
    t.equal(await heading.locator('a').getAttribute('href'), '#cursor_expired')
    t.strictSame(errors, [])
  })

  t.test(`${name}: search and navigation find sections, fields and operations`, async (t) => {
    const { page, errors } = await openDocsPage(t, browser, `${service.url}/`, screen)
    t.equal(page.url(), `${service.url}/docs`, '/ leads to /docs')
    const search = page.getByRole('searchbox')
    const found: Record<string, RegExp> = {
      expired_token: /#expired_token$/,
      retentionFrom: /#RetentionDetail[.]retentionFrom$/,
      'List account trans': /#\/Transactions\/listAccountTransactions$/,
    }
    for (const [words, url] of Object.entries(found)) {
      await search.fill(words)
      t.match(await page.locator('#results a').first().getAttribute('href'), url)
    }
    await search.fill('')
    const link = page.locator('#contents').getByRole('link', { name: 'Exact decimals' })
    if (screen === PHONE) await page.locator('#contents summary').click()
    await link.waitFor()
    t.equal(await link.getAttribute('href'), '#exact-decimals')
    t.strictSame(errors, [])
  })
}
