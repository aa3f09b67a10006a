import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual, promisify } from 'node:util'
import { brotliDecompress, gunzip, zstdDecompress } from 'node:zlib'
import t from 'tap'
import { addApp, addConnection, addPortfolioTransactions, addToken } from './rows.ts'
import { startService } from './service.ts'

/*
 * Answers are written where others were before (src/database/blocks.ts), and large ones while they are
 * sent (src/queries/json-array.ts). Whoever reads, at whatever pace and in whatever encoding, must get
 * what was written for them.
 */

const CONNECTIONS = 4
/** Enough for thirty pieces, which are made while they are sent. */
const ROWS = 1_600
const LIMITS = [200, 400, 700, 1_000, ROWS]
const FOR_MS = 4_000
const CLIENTS = 32

const decoders = {
  identity: async (body: Buffer) => body,
  gzip: promisify(gunzip),
  br: promisify(brotliDecompress),
  zstd: promisify(zstdDecompress),
}
const ENCODINGS: (keyof typeof decoders)[] = ['identity', 'identity', 'gzip', 'br', 'zstd']

const { db, port, get } = await startService(t, { logLevel: 'error' })

t.test('An answer is what was written for it, beside others that come and go', async (t) => {
  const appId = await addApp(db)
  const token = await addToken(db, appId)
  const truths: Truth[] = []
  for (let connection = 0; connection < CONNECTIONS; connection += 1) {
    const added = await addConnection(db, appId)
    // In parts, as a statement takes no more than 65,535 parameters.
    for (let part = 0; part < ROWS; part += 800)
      await addPortfolioTransactions(db, added, ...rowsOf(connection, part, 800))
    for (const limit of LIMITS) {
      const path = `${added.portfolio}?limit=${limit}`
      const { items } = (await get(path, { token })).json()
      const descriptions = items.map((item: { description: string }) => item.description)
      const expected = Array.from({ length: limit }, (_, row) => descriptionOf(connection, row))
      if (!isDeepStrictEqual(descriptions, expected)) throw new Error(`${path} is wrong by itself`)
      truths.push({ path, limit, text: (await get(path, { token })).text })
    }
  }
  const counts = { whole: 0, pieces: 0, left: 0 }
  const wrong: string[] = []
  const until = performance.now() + FOR_MS
  const client = async () => {
    while (performance.now() < until) {
      const { path, limit, text } = any(truths)
      const encoding = any(ENCODINGS)
      const headers = { authorization: `Bearer ${token}`, 'accept-encoding': encoding }
      const answer = await ask(path, headers)
      if (Math.random() < 0.1) {
        answer.destroy()
        counts.left += 1
        continue
      }
      const body = await readAt(any([0, 0, 0, 10]), answer)
      if (answer.statusCode === 503) continue
      const right = Buffer.from(text).equals(await decoders[encoding](body))
      if (!right) wrong.push(`${path} in ${encoding}`)
      counts[limit === ROWS ? 'pieces' : 'whole'] += 1
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, client))
  t.comment(counts)
  t.same(wrong.slice(0, 3), [])
  for (const [what, count] of Object.entries(counts)) t.ok(count > 0, what)
})

/** What an address answers while nobody else asks. */
interface Truth {
  path: string
  limit: number
  text: string
}

const any = <T>(list: T[]) => list[Math.floor(Math.random() * list.length)] as T

/** Newest first, as they are listed. */
const descriptionOf = (connection: number, row: number) =>
  `connection ${connection} row ${row} `.padEnd(500 + (row % 200), `${row % 10}${connection}`)

const rowsOf = (connection: number, from: number, count: number) =>
  Array.from({ length: count }, (_, index) => ({
    operation_date_day: new Date(Date.UTC(2024, 0, 1) - (from + index) * 86_400_000)
      .toISOString()
      .slice(0, 10),
    description: descriptionOf(connection, from + index),
  }))

async function ask(path: string, headers: Record<string, string>): Promise<IncomingMessage> {
  const asked = request({ port, host: '127.0.0.1', path, headers, agent: false }).end()
  const [answer] = await once(asked, 'response')
  return answer
}

/** @param restMs how long to read nothing, after the head and after each chunk */
async function readAt(restMs: number, answer: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  if (restMs > 0) await sleep(20 * restMs)
  for await (const chunk of answer) {
    chunks.push(chunk)
    if (restMs > 0) await sleep(restMs)
  }
  return Buffer.concat(chunks)
}
