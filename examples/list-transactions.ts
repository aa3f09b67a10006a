/**
 * Prints the identifier and the amount of every portfolio transaction of a connection, with all digits.
 * Needs Node.js 22.18 or later: node examples/list-transactions.ts
 */
import { setTimeout as sleep } from 'node:timers/promises'

const {
  BASE_URL = 'http://127.0.0.1:3000',
  APP_TOKEN = 'idq_demo_wealth_this_token_is_public',
  CONNECTION_TOKEN = 'DEMOSMALL1',
} = process.env

interface Page {
  items: { transactionId: string; amount: string | null }[]
  totalItems: number
}

const LIMIT = 1000
const ATTEMPTS = 6
const TIMEOUT_MS = 30_000
const list = `${BASE_URL}/api/v1/queries/connections/${CONNECTION_TOKEN}/portfolios/transactions`
const headers = {
  Authorization: `Bearer ${APP_TOKEN}`,
  // Decimals are JSON strings, so JSON.parse() does not round them.
  Accept: 'application/json;IEEE754Compatible=true',
}

/** Requests a page. Repeats the request after 429, 503, and if no complete response arrives. */
async function request(query: string): Promise<{ page: Page; version: string | null }> {
  for (let attempt = 1; ; attempt += 1) {
    let delay = 2 ** attempt * Math.random()
    try {
      const signal = AbortSignal.timeout(TIMEOUT_MS)
      const response = await fetch(`${list}?${query}`, { headers, signal })
      const body = await response.json()
      if (response.status === 200)
        return { page: body as Page, version: response.headers.get('data-version') }
      // The error body has the cause in `code`, and the request in `requestId`.
      if (attempt === ATTEMPTS || ![429, 503].includes(response.status)) {
        console.error(body)
        process.exit(1)
      }
      delay += Number(response.headers.get('retry-after') ?? 1)
    } catch (error) {
      if (attempt === ATTEMPTS) throw error
    }
    await sleep(delay * 1000)
  }
}

/** With `version`, all pages are of one state of the data. If it changes: 412, start again. */
let version: string | null = null
for (let number = 0, total = 1; number * LIMIT < total; number += 1) {
  const same = version === null ? '' : `&version=${version}`
  const result = await request(`limit=${LIMIT}&page=${number}${same}`)
  for (const { transactionId, amount } of result.page.items) console.log(transactionId, amount)
  version = result.version
  total = result.page.totalItems
}
