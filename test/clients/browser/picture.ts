/** Writes the picture of the page /docs in README.md. */
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { DEMO } from '../../../seeds/sample-data.ts'
import { DEMO_TOKEN, startSeededService } from '../../support/seeded-service.ts'
import { launchChromium } from './chromium.ts'
import { DESK, newDocsPage } from './docs-page.ts'

const PICTURE = new URL('../../../docs/images/docs-page.png', import.meta.url)

t.test('docs:picture: an operation and its response at 1280 pixels', async (t) => {
  const browser = await launchChromium(t)
  const { token: DEMO_CONNECTION_TOKEN } = DEMO.wealth.connections.small
  const environment = { DEMO_TOKENS: `${DEMO_TOKEN},${DEMO_CONNECTION_TOKEN}` }
  const service = await startSeededService(t, { environment })
  const { page, open } = await newDocsPage(t, browser, DESK)
  await open(`${service.url}/docs#listPortfolioTransactions`)
  const operation = page.locator('#listPortfolioTransactions')
  await operation.getByRole('button', { name: 'Send request' }).click()
  await operation.getByText(/^200 OK/).waitFor()
  await page.screenshot({ path: fileURLToPath(PICTURE) })
})
