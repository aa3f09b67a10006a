import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import t from 'tap'
import { addCaller, addresses } from '../support/rows.ts'
import { startService } from '../support/service.ts'

/**
 * Responses of 30 MB and more to a slow reader, compared byte by byte. The service reuses the memory of chunks
 * that were sent, so a mistake there damages rows only while the client is behind.
 */
const DAYS = 300
const ROWS_A_DAY = 200
const service = await startService(t, { environment: { MAX_LIMIT: '100000' } })
const caller = await addCaller(service.db)
// Rows of different lengths: their borders are at other places in each chunk. A long row gets a chunk of its own.
await sql`
  insert into portfolio_transaction (connection_id, transaction_id, portfolio_id, type, amount, description,
    operation_date_day)
  select ${caller.connection.id}, md5('row' || n)::uuid, md5('portfolio')::uuid, 'BUY', n + 0.01,
    n || ' "' || repeat('x', case n % 41 when 0 then 9900 else n % 97 end) || '" ñ', day
  from generate_series(1, ${sql.lit(DAYS * ROWS_A_DAY)}) n
  cross join lateral (select date '2020-01-01' + n / ${sql.lit(ROWS_A_DAY)} as day) d
`.execute(service.db)
const { portfolio } = addresses(caller.connection.token)

const get = async (query: string, accept: string) =>
  (await service.get(`${portfolio}?${query}`, { token: caller.token, headers: { accept } })).text

/** Lines of the exports of single days, newest first. Each fits in one chunk, so its memory is used once. */
async function linesOfDays(accept: string): Promise<string[]> {
  const lines: string[] = []
  for (let day = DAYS; day >= 0; day -= 1) {
    const date = new Date(Date.UTC(2020, 0, 1 + day)).toISOString().slice(0, 10)
    const text = await get(`from=${date}&to=${date}`, accept)
    lines.push(...text.split('\n').slice(accept === 'text/csv' ? 1 : 0, -1))
  }
  return lines
}

/**
 * Reads a response with pauses, so that the service waits for the client all the time.
 * @param between bytes between two pauses
 */
async function readSlowly(query: string, accept: string, between = 300_000): Promise<Buffer> {
  const headers = { authorization: `Bearer ${caller.token}`, accept }
  const sent = request(`${service.url}${portfolio}?${query}`, { headers })
  sent.end()
  const [response] = await once(sent, 'response')
  const chunks: Buffer[] = []
  let unpaused = 0
  for await (const chunk of response) {
    chunks.push(chunk)
    unpaused += chunk.length
    if (unpaused < between) continue
    unpaused = 0
    await sleep(20)
  }
  return Buffer.concat(chunks)
}

const digest = (text: string | Buffer) => createHash('sha256').update(text).digest('hex')

const ndjson = await linesOfDays('application/x-ndjson')
t.equal(ndjson.length, DAYS * ROWS_A_DAY)

t.test('NDJSON: the rows of all days', async (t) => {
  for (const between of [100_000, 300_000, 1_000_000]) {
    const body = await readSlowly('', 'application/x-ndjson', between)
    t.ok(body.length > 30e6, `${body.length} bytes`)
    t.equal(digest(body), digest(`${ndjson.join('\n')}\n`))
  }
})

t.test('JSON: one page of all rows', async (t) => {
  const body = await readSlowly('limit=100000', 'application/json')
  t.ok(body.length > 30e6, `${body.length} bytes`)
  const items = body.subarray('{"items":['.length, body.lastIndexOf('],"limit"'))
  t.equal(digest(items), digest(ndjson.join(',')))
})

t.test('CSV: the rows of all days', async (t) => {
  const lines = await linesOfDays('text/csv')
  const body = await readSlowly('', 'text/csv')
  const start = body.indexOf('\n') + 1
  t.equal(digest(body.subarray(start)), digest(`${lines.join('\n')}\n`))
})
