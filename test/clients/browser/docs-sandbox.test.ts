import { readFile } from 'node:fs/promises'
import { sql } from 'kysely'
import t, { type Test } from 'tap'
import { DEMO } from '../../../seeds/sample-data.ts'
import { operatorHere } from '../../support/operator-process.ts'
import { DEMO_TOKEN, startSeededService } from '../../support/seeded-service.ts'
import { startService } from '../../support/service.ts'
import { launchChromium } from './chromium.ts'
import { DESK, newDocsPage } from './docs-page.ts'

interface State {
  afterDays: number
  day: string
  years: Record<string, { realisedGain: string }>
}

const states: Record<string, State[]> = JSON.parse(
  await readFile(new URL('../../../seeds/expected.json', import.meta.url), 'utf8'),
)
const browser = await launchChromium(t)
const { token: DEMO_CONNECTION_TOKEN } = DEMO.wealth.connections.small
const environment = { DEMO_TOKENS: `${DEMO_TOKEN},${DEMO_CONNECTION_TOKEN}` }
const service = await startSeededService(t, { environment })
const { page, errors, open } = await newDocsPage(t, browser, DESK)

/** Sends the request of a story. @returns what the page shows: its judgement, and the cells of its results */
async function send(id: string) {
  const story = page.locator(`#${id}`)
  await story.waitFor()
  if ((await story.getAttribute('open')) === null) await story.locator('summary').first().click()
  await story.getByRole('button', { name: 'Send request' }).click()
  const judgement = story.locator('output:is(.good, .error)')
  await judgement.waitFor()
  const rows = await story.locator('.story-results > .scroll tbody tr').all()
  const cells = await Promise.all(
    rows.map(async (row) => (await row.locator('td').allInnerTexts()).map((text) => text.trim())),
  )
  const kind = await judgement.getAttribute('class')
  return { text: await judgement.innerText(), kind, cells, story }
}

/** Checks that the page finds each result of a story, also the gains of the last state that has begun. */
async function checkStory(t: Test, connection: string, afterDays: number) {
  const { text, kind, cells } = await send(connection)
  t.equal(kind, 'good', `${connection}: ${text}`)
  t.match(text, new RegExp(`^${cells.length} of ${cells.length} results are as expected$`))
  const state = states[connection]?.findLast((each) => each.afterDays <= afterDays)
  for (const [year, { realisedGain }] of Object.entries(state?.years ?? {})) {
    const row = cells.find(([result]) => result === `Realised gain ${year}`)
    t.same(row, [`Realised gain ${year}`, 'equal', realisedGain, realisedGain], connection)
  }
}

t.test('each story: Send finds the results that are known', async (t) => {
  await open(`${service.url}/docs#DEMOSPLIT1`)
  await page.locator('#DEMOSPLIT1[open]').waitFor()
  for (const connection of Object.keys(states)) await checkStory(t, connection, 0)
  const { cells } = await send('DEMOGAP1')
  const gap = '2021-06-30: the row states 40 shares, the rows before it make 0'
  t.same(cells.at(-1), ['First row that states another position', 'equal', gap, gap])
  t.same(errors, [], 'no error, no violation of the policy, no other server')
})

t.test('stories of errors: the error, and the way to its remedy', async (t) => {
  await open(`${service.url}/docs`)
  const wanted = {
    'expired-app-token': '401 expired_token',
    DEMOOTHER1: '404 connection_not_found',
  }
  for (const [id, error] of Object.entries(wanted)) {
    const { kind, cells, story } = await send(id)
    t.equal(kind, 'good', id)
    t.same(cells, [['Error', 'equal', error, error]])
    await story.getByRole('link', { name: 'cause and remedy' }).click()
    t.match(page.url(), new RegExp(`#${error.split(' ')[1]}$`))
  }
})

t.test('a row with another number of shares: the page says which result differs', async (t) => {
  await open(`${service.url}/docs`)
  const change = (from: string, to: string) =>
    sql`update portfolio_transaction set titles = ${to} where type = 'SELL' and titles = ${from}
      and connection_id = (select id from connection where label = ${DEMO.wealth.connections.split.label})
    `.execute(service.db)
  await change('330', '329')
  t.teardown(() => change('329', '330'))
  const { kind, text, cells } = await send('DEMOSPLIT1')
  t.equal(kind, 'error')
  t.match(text, /^\d+ of \d+ results are as expected$/)
  const differing = cells.filter(([, judgement]) => judgement !== 'equal').map(([result]) => result)
  t.same(differing, ['Shares after 2024-09-20', 'Realised gain 2024'])
  await change('329', '330')
})

t.test('the sample data moves: the stories have the results of their day', async (t) => {
  const advanced = await operatorHere(['demo', 'advance', '--days', '5'], {
    DATABASE_URL: service.databaseUrl,
  })
  t.equal(advanced.code, 0, advanced.stderr)
  await open(`${service.url}/docs`)
  for (const [connection, { length }] of Object.entries(states))
    if (length > 1) await checkStory(t, connection, 5)
})

t.test('demo tokens of other data: no stories, whose results nobody knows', async (t) => {
  const others = { DEMO_TOKENS: `another_app_token,${DEMO_CONNECTION_TOKEN}` }
  const { url } = await startService(t, { environment: others })
  const answer = page.waitForResponse(/stories\.json/)
  await open(`${url}/docs`)
  t.equal((await answer).status(), 200)
  t.equal(await page.locator('#sandbox').count(), 1)
  t.equal(await page.locator('.story').count(), 0)
})

t.test('script of the search that could not be loaded: a sentence, and Send works', async (t) => {
  const other = await newDocsPage(t, browser, DESK)
  await other.page.route('**/search.js*', (route) => route.abort())
  await other.open(`${service.url}/docs#listPortfolioTransactions`)
  await other.page.locator('#found').filter({ hasText: 'The search is not available' }).waitFor()
  const operation = other.page.locator('#listPortfolioTransactions')
  await operation.getByRole('button', { name: 'Send request' }).click()
  await operation.getByText(/^200 OK/).waitFor()
})
