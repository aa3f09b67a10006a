import { readFile } from 'node:fs/promises'
import t from 'tap'
import { startSeededService } from '../../support/seeded-service.ts'
import { launchChromium } from './chromium.ts'
import { DESK, newDocsPage } from './docs-page.ts'

/**
 * A query, and the sections that help. They were written down before the search was built, and those with a reader by
 * somebody who had only read the titles of the sections.
 */
interface Query {
  query: string
  /** Who asks. */
  reader?: string
  /** Ids of sections, or the last part of the id of a field. */
  expected: string[]
}

const FIRST_RESULTS = 5

const read = async (name: string): Promise<Query[]> =>
  JSON.parse(await readFile(new URL(name, import.meta.url), 'utf8'))

const queries = await read('search-queries.json')
/** Queries with one answer: misspelt words, types, errors and questions. They were written before they were first searched. */
const questions = await read('search-first.json')
/** The others have an answer below the first result. */
const RIGHT_FIRST = 74

const browser = await launchChromium(t)
const service = await startSeededService(t)
const { page, errors, open } = await newDocsPage(t, browser, DESK)
await open(`${service.url}/docs`)

/**
 * Puts a query into the box, and returns the ids of the results. With the actions of Playwright for each query, this file
 * takes 17 s of processor time instead of 3. docs-screens.test.ts types and clicks.
 */
async function search(query: string): Promise<string[]> {
  return page.evaluate<string[]>(`(async () => {
    const box = document.querySelector('input[type=search]')
    const found = document.querySelector('#found')
    const type = async (text, isShown) => {
      box.value = text
      box.dispatchEvent(new Event('input'))
      const end = performance.now() + 20_000
      while (!isShown()) {
        if (performance.now() > end) throw new Error('The page shows: ' + found.textContent)
        await new Promise(requestAnimationFrame)
      }
    }
    await type('', () => found.textContent === '')
    await type(${JSON.stringify(query)}, () => found.textContent.includes('result'))
    const links = [...document.querySelectorAll('#results a')]
    return links.map((link) => link.getAttribute('href').slice(1))
  })()`)
}

for (const { query, expected } of queries)
  t.test(`search "${query}": a section that helps is among the first results`, async (t) => {
    const results = await search(query)
    const first = results.slice(0, FIRST_RESULTS)
    const isFound = first.some((id) =>
      // A value of a type, and a field of a row, are a part of their section.
      expected.some(
        (wanted) => id === wanted || id.endsWith(`.${wanted}`) || id.startsWith(`${wanted}.`),
      ),
    )
    t.ok(isFound, `${first.join(', ')} has one of ${expected.join(', ')}`)
    t.same(errors, [])
  })

t.test('search: the right answer is the first result', async (t) => {
  const wrong: string[] = []
  for (const { query, expected } of questions) {
    const [first = 'none'] = await search(query)
    if (!expected.includes(first)) wrong.push(`${query}: ${first}, not ${expected.join(' or ')}`)
  }
  const right = questions.length - wrong.length
  t.ok(right >= RIGHT_FIRST, `${right} of ${questions.length}; wrong: ${wrong.join('; ')}`)
  t.same(errors, [])
})

t.test('search whose files could not be loaded: a sentence, and results later', async (t) => {
  const other = await newDocsPage(t, browser, DESK)
  await other.page.route('**/minisearch.js*', (route) => route.abort())
  await other.open(`${service.url}/docs`)
  const box = other.page.getByRole('searchbox')
  await box.fill('pagination')
  await other.page.locator('#found').filter({ hasText: 'The search is not available' }).waitFor()
  await other.page.unroute('**/minisearch.js*')
  await box.fill('pagination ')
  await other.page.locator('#results a[href="#pagination"]').waitFor()
})
