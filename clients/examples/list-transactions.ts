/**
 * Prints the identifier and the amount of every portfolio transaction of a connection, with all digits.
 * Needs Node.js 22.18 or later: node clients/examples/list-transactions.ts
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
/** A longer `Retry-After` ends the program. */
const MAX_WAIT_MS = 60_000
const list = `${BASE_URL}/api/v1/queries/connections/${CONNECTION_TOKEN}/portfolios/transactions`
const headers = {
  Authorization: `Bearer ${APP_TOKEN}`,
  // Decimals are JSON strings, so JSON.parse() does not round them.
  Accept: 'application/json;IEEE754Compatible=true',
}

function fail(reason: string): never {
  console.error(reason)
  process.exit(1)
}

/** Milliseconds of `Retry-After`, which is a number of seconds or an HTTP date. */
function retryAfterMs(text: string): number {
  const ms = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now()
  return Math.max(0, ms || 0)
}

/** Requests a page. Repeats the request after 429, 503, and if no complete response arrives. */
async function request(query: string): Promise<{ page: Page; version: string }> {
  for (let attempt = 1; ; attempt += 1) {
    let reason: string
    let retry = true
    let waitMs = 0
    try {
      const signal = AbortSignal.timeout(TIMEOUT_MS)
      const response = await fetch(`${list}?${query}`, { headers, signal })
      const body = await response.text()
      const version = response.headers.get('data-version')
      if (response.status === 200 && version !== null) return { page: JSON.parse(body), version }
      // The error body has the cause in `code`, and the request in `requestId`.
      reason = `Status ${response.status}: ${body}`
      retry = [429, 503].includes(response.status)
      waitMs = retryAfterMs(response.headers.get('retry-after') ?? '')
    } catch (error) {
      const { message, cause } = error as { message: string; cause?: NodeJS.ErrnoException }
      reason = `No complete response from ${BASE_URL}: ${cause?.message || cause?.code || message}`
    }
    if (!retry || attempt === ATTEMPTS || waitMs > MAX_WAIT_MS) fail(reason)
    await sleep(waitMs + 500 * 2 ** (attempt - 1) * Math.random())
  }
}

if (!/^https?:\/\/\S+$/.test(BASE_URL)) fail('BASE_URL must be an http or https URL.')
// Otherwise, the error of the library would print the token.
if (!/^[!-~]+$/.test(APP_TOKEN + CONNECTION_TOKEN))
  fail('APP_TOKEN and CONNECTION_TOKEN must be visible ASCII characters.')
/** With `version`, all pages are of one state of the data. If it changes: 412, start again. */
let version: string | null = null
for (let number = 0, total = 1; number * LIMIT < total; number += 1) {
  const same = version === null ? '' : `&version=${version}`
  const result = await request(`limit=${LIMIT}&page=${number}${same}`)
  for (const { transactionId, amount } of result.page.items) console.log(transactionId, amount)
  version = result.version
  total = result.page.totalItems
}
