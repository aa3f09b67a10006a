/** Writes the picture of the page /docs in README.md, and the digest of what it shows. */
import { writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { DEMO } from '../../../seeds/sample-data.ts'
import { PICTURE, PICTURE_DIGEST, pictureDigest, STORY } from '../../../tools/docs/page/picture.ts'
import { DEMO_TOKEN, startSeededService } from '../../support/seeded-service.ts'
import { launchChromium } from './chromium.ts'
import { DESK, newDocsPage } from './docs-page.ts'

t.test('docs:picture: a story and its results at 1280 pixels', async (t) => {
  const browser = await launchChromium(t)
  const { token: DEMO_CONNECTION_TOKEN } = DEMO.wealth.connections.small
  const environment = { DEMO_TOKENS: `${DEMO_TOKEN},${DEMO_CONNECTION_TOKEN}` }
  const service = await startSeededService(t, { environment })
  const { page, open } = await newDocsPage(t, browser, DESK)
  await open(`${service.url}/docs#${STORY}`)
  const story = page.locator(`#${STORY}`)
  await story.getByRole('button', { name: 'Send request' }).click()
  await story.locator('output.good').waitFor()
  // The click has scrolled to the button.
  await story.evaluate((element) => element.scrollIntoView())
  await page.screenshot({ path: fileURLToPath(PICTURE) })
  await writeFile(PICTURE_DIGEST, `${await pictureDigest()}\n`)
})
