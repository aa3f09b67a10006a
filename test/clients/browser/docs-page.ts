import type { Browser, Page } from 'playwright-core'
import type { Test } from 'tap'

export const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true }
export const DESK = { viewport: { width: 1280, height: 900 } }

export interface DocsPage {
  page: Page
  /** Errors of the page, and its requests to other servers, since it was opened. */
  errors: string[]
  /** Opens an address. */
  open(address: string): Promise<void>
}

/** Creates a page. It is closed at teardown. */
export async function newDocsPage(t: Test, browser: Browser, screen: object): Promise<DocsPage> {
  const page = await browser.newPage(screen)
  t.teardown(() => page.close())
  page.setDefaultTimeout(20_000)
  let own = ''
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
  const open = async (address: string) => {
    own = new URL(address).origin
    errors.length = 0
    // A page that differs in its anchor only would not load again.
    await page.goto('about:blank')
    await page.goto(address)
    // The script has shown the settings of the service.
    await page.locator('main[data-settings]').waitFor({ state: 'attached' })
  }
  return { page, errors, open }
}
