import type { Browser, Page } from 'playwright-core'
import type { Test } from 'tap'

export const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true }
export const DESK = { viewport: { width: 1280, height: 900 } }

/** Opens the page, and records its errors and its requests to other servers. */
export async function openDocsPage(
  t: Test,
  browser: Browser,
  address: string,
  screen: object = DESK,
): Promise<{ page: Page; errors: string[] }> {
  const page = await browser.newPage(screen)
  t.teardown(() => page.close())
  const { origin: own } = new URL(address)
  page.setDefaultTimeout(20_000)
  const errors: string[] = []
  page.on('pageerror', (error) => errors.push(error.message))
  page.on('console', (message) => {
    // The browser reports violations of the policy, and responses that are errors.
    if (['error', 'warning'].includes(message.type())) errors.push(message.text())
  })
  page.on('request', (request) => {
    const { origin, protocol } = new URL(request.url())
    if (origin !== own && protocol !== 'data:') errors.push(`request to ${request.url()}`)
  })
  await page.goto(address)
  await page.locator('.opblock').first().waitFor()
  return { page, errors }
}
