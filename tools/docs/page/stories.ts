/** Writes the stories of the sample data for the page /docs, for `npm run docs:renew`. */
import { readFile } from 'node:fs/promises'
import { DEMO } from '../../../seeds/sample-data.ts'
import { ProblemCodes } from '../../../src/schemas/problem.ts'

/** The committed file, which a service with demo tokens serves. */
export const STORIES = new URL('../../../src/http/docs-page/stories.json', import.meta.url)

/** Their events, and what goes wrong. */
const TEXTS = new URL('../../../docs/sandbox.md', import.meta.url)
/** Their results by day. */
const RESULTS = new URL('../../../seeds/expected.json', import.meta.url)

/** Credentials of the sample data with which every request fails. */
const ERRORS = [
  {
    id: 'expired-app-token',
    event: 'An app token that has expired',
    appToken: DEMO.wealth.expiredToken,
    connection: DEMO.wealth.connections.small.token,
    code: 'expired_token',
  },
  {
    id: DEMO.tax.connections.other.token,
    event: 'A connection of another app',
    appToken: DEMO.wealth.token,
    connection: DEMO.tax.connections.other.token,
    code: 'connection_not_found',
  },
] as const

/** A row of a table of docs/sandbox.md: the connection, its event, and in most tables what goes wrong. */
const TABLE_ROW = /^\| `(DEMO\w+)` \| ([^|]+?) \|(?: ([^|]+?) \|)?$/gm

const capitalised = (text: string) => text.charAt(0).toUpperCase() + text.slice(1)

export async function storiesText(): Promise<string> {
  const events = new Map<string, { event: string; mistake?: string }>()
  // The first table that names a connection describes it.
  for (const [, connection = '', event = '', mistake] of (await readFile(TEXTS, 'utf8')).matchAll(
    TABLE_ROW,
  ))
    if (!events.has(connection))
      events.set(connection, { event: capitalised(event), ...(mistake && { mistake }) })
  const results = JSON.parse(await readFile(RESULTS, 'utf8')) as Record<string, object[]>
  const stories = Object.entries(results).map(([connection, states]) => {
    const text = events.get(connection)
    if (text === undefined) throw new Error(`docs/sandbox.md does not describe ${connection}`)
    return { connection, ...text, states }
  })
  const errors = ERRORS.map((error) => ({ ...error, status: ProblemCodes[error.code].status }))
  // This connection has rows of each day, up to that of the sample data.
  const clock = DEMO.wealth.connections.large.token
  return `${JSON.stringify({ appToken: DEMO.wealth.token, clock, stories, errors })}\n`
}
