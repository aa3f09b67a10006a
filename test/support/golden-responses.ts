import { createHash } from 'node:crypto'
import { type Kysely, sql } from 'kysely'
import pg from 'pg'
import type { Test } from 'tap'
import { DEMO } from '../../seeds/sample-data.ts'
import { seed } from '../../seeds/seed.ts'
import type { Tables } from '../../src/postgres/tables.ts'
import type { Problem } from '../../src/schemas/problem.ts'
import { addCaller, addresses, type Caller } from './rows.ts'
import { startService } from './service.ts'

export interface TestRequest {
  path: string
  /** Token of the app. Without it, the request has no Authorization header. */
  token?: string | undefined
}

/** Response recorded while there is no fault. Each later response to the request must equal it. */
export interface GoldenResponse extends TestRequest {
  status: number
  etag: string | null
  link: string | null
  /** SHA-256 of the body, without the request id of an error. */
  digest: string
  /** Length of the body in bytes. */
  bytes: number
  /** First 200 bytes of the body, for messages. */
  start: string
}

/** Result of one request: the golden response, a correct 503, or an error. */
export type Result = 'ok' | 'unavailable' | `error: ${string}`

export interface SendOptions {
  headers?: Record<string, string>
  /** Time in ms after which the request counts as hanging. */
  limitMs?: number | undefined
}

/** @param url of the service, such as http://127.0.0.1:3000 */
export function send(url: string, request: TestRequest, options: SendOptions = {}) {
  const { path, token } = request
  const { headers = {}, limitMs = 30_000 } = options
  const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const signal = AbortSignal.timeout(limitMs)
  return fetch(url + path, { headers: { ...authorization, ...headers }, signal })
}

/** Sends a request and reads the whole body. */
export async function sendAndRead(url: string, request: TestRequest, options?: SendOptions) {
  const response = await send(url, request, options)
  return { status: response.status, headers: response.headers, text: await response.text() }
}

/** Records the responses to the requests, one after the other. */
export async function record(url: string, requests: TestRequest[]): Promise<GoldenResponse[]> {
  const golden: GoldenResponse[] = []
  for (const { path, token } of requests) {
    const response = await send(url, { path, token })
    const { status, headers } = response
    const [etag, link] = [headers.get('etag'), headers.get('link')]
    golden.push({ path, token, status, etag, link, ...(await digestOf(response)) })
  }
  return golden
}

/** Records responses that must all be 200. */
export async function recordOk(url: string, requests: TestRequest[]): Promise<GoldenResponse[]> {
  const golden = await record(url, requests)
  const other = golden.find(({ status }) => status !== 200)
  if (other) throw new Error(`${other.path}: ${other.status} ${other.start}`)
  return golden
}

/** Sends the request of a golden response again and compares. */
export async function check(
  url: string,
  golden: GoldenResponse,
  options?: SendOptions,
): Promise<Result> {
  const response = await send(url, golden, options)
  if (response.status === 503) return checkUnavailable(response.headers, await response.text())
  const { digest, bytes, start } = await digestOf(response)
  if (response.status === golden.status && digest === golden.digest) return 'ok'
  return `error: ${golden.path}: ${response.status}, ${bytes} of ${golden.bytes} bytes: ${start}`
}

/** A 503 must have Retry-After and the standard error body. */
function checkUnavailable(headers: Headers, text: string): Result {
  const { code, requestId } = JSON.parse(text) as Problem
  const correct =
    code === 'service_unavailable' &&
    requestId === headers.get('x-request-id') &&
    /^application\/json/.test(headers.get('content-type') ?? '') &&
    /^[1-9][0-9]*$/.test(headers.get('retry-after') ?? '')
  return correct ? 'unavailable' : `error: not the standard 503: ${text}`
}

/** ETag in the format of the golden one, with a version that the list never had. */
export function staleETag({ etag }: GoldenResponse): string {
  return String(etag).replace('"', '"0')
}

const START_BYTES = 200

type Digest = Pick<GoldenResponse, 'digest' | 'bytes' | 'start'>

/** Hashes a body of 200 as it arrives: a load test cannot hold many large ones. */
async function digestOf(response: Response): Promise<Digest> {
  if (response.status === 200) return digestOfChunks(response.body ?? [])
  const text = (await response.text()).replace(/"requestId":"[^"]*"/, '')
  return digestOfChunks([Buffer.from(text)])
}

export async function digestOfChunks(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): Promise<Digest> {
  const hash = createHash('sha256')
  let bytes = 0
  let start = Buffer.alloc(0)
  for await (const chunk of chunks) {
    hash.update(chunk)
    bytes += chunk.length
    if (start.length < START_BYTES) start = Buffer.concat([start, chunk])
  }
  const digest = hash.digest('hex')
  return { digest, bytes, start: start.toString('utf8', 0, START_BYTES) }
}

/** Adds three apps, each with a connection that has this number of rows in both lists. */
export async function addSampleData(db: Kysely<Tables>, rows: number): Promise<Caller[]> {
  const callers: Caller[] = []
  for (let app = 0; app < 3; app += 1) {
    const caller = await addCaller(db)
    await addRows(db, caller.connection.id, rows)
    callers.push(caller)
  }
  return callers
}

async function addRows(db: Kysely<Tables>, id: string, rows: number): Promise<void> {
  const days = sql`date '2020-01-01' + n / 10`
  const text = sql`'row ' || n || repeat(' with text', n % 20)`
  const numbers = sql`generate_series(1, ${sql.lit(rows)}) n`
  await sql`insert into portfolio_transaction
    (connection_id, transaction_id, portfolio_id, type, titles, amount, currency, description, operation_date_day)
    select ${id}::bigint, gen_random_uuid(), gen_random_uuid(), 'BUY', n / 7.0, n * 1.25, 'EUR', ${text}, ${days}
    from ${numbers}`.execute(db)
  await sql`insert into account_transaction
    (connection_id, movement_id, account_id, type, amount, description, operation_date_day)
    select ${id}::bigint, gen_random_uuid(), gen_random_uuid(), 'DEPOSIT', n * 0.01, ${text}, ${days}
    from ${numbers}`.execute(db)
}

/** Adds a connection whose one page has 10,000 rows, each with a description of this length. */
export async function addLargePage(db: Kysely<Tables>, characters: number): Promise<TestRequest> {
  const { connection, token } = await addCaller(db)
  await sql`insert into account_transaction
    (connection_id, movement_id, account_id, type, amount, description, operation_date_day)
    select ${connection.id}::bigint, gen_random_uuid(), gen_random_uuid(), 'DEPOSIT', n,
      repeat('x', ${sql.lit(characters)}), '2020-01-01'
    from generate_series(1, 10000) n`.execute(db)
  return { path: `${connection.account}?limit=10000`, token }
}

/** Requests of each type for the connections of the sample data. */
export function requestsOf(callers: Caller[]): Required<TestRequest>[] {
  return callers.flatMap(({ connection, token }) =>
    [
      `${connection.portfolio}?limit=20`,
      `${connection.portfolio}?from=2020-02-01&to=2020-02-20`,
      `${connection.portfolio}?limit=500&page=1`,
      connection.portfolio,
      `${connection.account}?limit=100&page=3`,
      `${connection.account}?limit=10000`,
      connection.orders,
    ].map((path) => ({ path, token })),
  )
}

/** Adds the demo data of `npm start`. */
export async function seedDemo(databaseUrl: string): Promise<void> {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 2 })
  await seed(pool).finally(() => pool.end())
}

/** Requests for the demo data: each endpoint, with the tokens of both apps, right and wrong. */
export const demoRequests: TestRequest[] = Object.values(DEMO).flatMap((app) =>
  ['DEMOLARGE1', 'DEMOSMALL1', 'DEMOEMPTY1', 'DEMOOTHER1'].flatMap((connection) => {
    const { portfolio, account, orders } = addresses(connection)
    const lists = [portfolio, account].flatMap((list) =>
      ['', '?limit=7&page=3', '?from=2025-06-01&limit=20', '?limit=10000', '?limit=0'].map(
        (query) => list + query,
      ),
    )
    return [orders, ...lists].map((path) => ({ path, token: app.token }))
  }),
)

/** Records the responses with status 200 of a service that reads the demo data without a proxy. */
export async function recordDemo(t: Test, databaseUrl: string): Promise<GoldenResponse[]> {
  const service = await startService(t, { databaseUrl })
  const golden = await record(service.url, demoRequests)
  await service.close()
  return golden.filter(({ status }) => status === 200)
}
