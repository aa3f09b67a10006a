/** Writes the picture of the page /docs in README.md, and the digest of what it shows. */
import { writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { DEMO } from '../../../seeds/sample-data.ts'
import {
  OPERATION,
  PICTURE,
  PICTURE_DIGEST,
  pictureDigest,
} from '../../../tools/docs/page/picture.ts'
import { DEMO_TOKEN, startSeededService } from '../../support/seeded-service.ts'
import { launchChromium } from './chromium.ts'
import { DESK, newDocsPage } from './docs-page.ts'

t.test('docs:picture: an operation and its response at 1280 pixels', async (t) => {
  const browser = await launchChromium(t)
  const { token: DEMO_CONNECTION_TOKEN } = DEMO.wealth.connections.small
  const environment = {
    DEMO_TOKENS: `${DEMO_TOKEN},${DEMO_CONNECTION_TOKEN}`,
    // The samples show this address instead of a random port. The page sends requests to its own address.
    PUBLIC_URL: 'http://127.0.0.1:3000',
  }
  const service = await startSeededService(t, { environment })
  const { page, open } = await newDocsPage(t, browser, DESK)
  await open(`${service.url}/docs#${OPERATION}`)
  const operation = page.locator(`#${OPERATION}`)
  await operation.getByRole('button', { name: 'Send request' }).click()
  await operation.getByText(/^200 OK/).waitFor()
  // The click has scrolled to the button.
  await operation.evaluate((element) => element.scrollIntoView())
  await page.screenshot({ path: fileURLToPath(PICTURE) })
  await writeFile(PICTURE_DIGEST, `${await pictureDigest()}\n`)
})
