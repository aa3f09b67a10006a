import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { connect } from 'node:net'
import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual, promisify } from 'node:util'
import { brotliDecompress, gunzip, zstdDecompress } from 'node:zlib'
import t from 'tap'
import {
  addApp,
  addCaller,
  addConnection,
  addPortfolioTransactions,
  addToken,
} from '../support/rows.ts'
import { startService } from '../support/service.ts'

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
      const accepts = encoding === 'identity' ? {} : { 'accept-encoding': encoding }
      const headers = { authorization: `Bearer ${token}`, ...accepts }
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

t.test('A HEAD request of one app leaves nothing in the answer of another', async (t) => {
  // So long that what is left of the first answer is still being made when the second one begins.
  const first = await callerWith('of the first app ', 800, 9_000)
  const second = await callerWith('of the second ', 800, 9_000)
  const { text } = await get(second.path, second)
  for (let round = 0; round < 4; round += 1) {
    const heads = Array.from({ length: 4 }, async () => {
      const head = await ask(first.path, bearer(first), 'HEAD')
      t.equal(head.resume().statusCode, 200)
    })
    const reads = [0, 20, 40, 80].map(async (ms) => {
      await sleep(ms)
      const body = await readAt(5, await ask(second.path, bearer(second)))
      t.ok(body.equals(Buffer.from(text)), 'the answer is the truth')
      t.notOk(body.includes('of the first app'))
    })
    await Promise.all([...heads, ...reads])
  }
})

t.test('An answer that waits behind another one is whole, whatever its rows are', async (t) => {
  const { appId, path, token } = await callerWith('before it ', 6_400, 800)
  const request = (path: string) =>
    `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n`
  // A row that is a piece by itself, behind one that leaves the piece before it all but empty.
  for (const length of [8_900, 9_000, 9_100, 10_000]) {
    const connection = await addConnection(db, appId)
    const rows = Array.from({ length: 200 }, (_, row) => ({
      ...dayOf(row),
      description: row === 0 ? 'é'.repeat(5_400) : `${row} `.padEnd(length, String(row % 10)),
    }))
    await addPortfolioTransactions(db, connection, ...rows)
    const { text } = await get(connection.portfolio, { token })
    const socket = connect({ port, host: '127.0.0.1' }).pause()
    socket.write(`${request(`${path}?limit=6400`)}\r\n`)
    socket.write(`${request(connection.portfolio)}Connection: close\r\n\r\n`)
    await sleep(700)
    const received = await readAt(0, socket)
    t.ok(lastBody(received).equals(Buffer.from(text)), `rows of ${length} bytes`)
  }
})

const bearer = ({ token }: { token: string }) => ({ authorization: `Bearer ${token}` })

/** A new app, and a connection of it with so many rows that name a mark. */
async function callerWith(mark: string, count: number, length: number) {
  const { appId, token, connection } = await addCaller(db)
  for (let part = 0; part < count; part += 800) {
    const rows = Array.from({ length: 800 }, (_, row) => ({
      ...dayOf(part + row),
      description: `${mark}${part + row} `.padEnd(length, mark),
    }))
    await addPortfolioTransactions(db, connection, ...rows)
  }
  return { appId, token, path: connection.portfolio }
}

/** The body of the last response on a connection, put together from its chunks. */
function lastBody(received: Buffer): Buffer {
  const chunks: Buffer[] = []
  let at = received.lastIndexOf('HTTP/1.1 200')
  at = received.indexOf('\r\n\r\n', at) + 4
  for (;;) {
    const start = received.indexOf('\r\n', at) + 2
    const length = Number.parseInt(received.toString('latin1', at, start), 16)
    if (!(length > 0)) return Buffer.concat(chunks)
    chunks.push(received.subarray(start, start + length))
    at = start + length + 2
  }
}

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

const dayOf = (row: number) => ({
  operation_date_day: new Date(Date.UTC(2024, 0, 1) - row * 86_400_000).toISOString().slice(0, 10),
})

const rowsOf = (connection: number, from: number, count: number) =>
  Array.from({ length: count }, (_, index) => ({
    ...dayOf(from + index),
    description: descriptionOf(connection, from + index),
  }))

/** As curl asks: without naming encodings, unless the headers do. */
async function ask(
  path: string,
  headers: Record<string, string>,
  method = 'GET',
): Promise<IncomingMessage> {
  const asked = request({ port, host: '127.0.0.1', path, method, headers, agent: false }).end()
  const [answer] = await once(asked, 'response')
  return answer
}

/** @param restMs how long to read nothing, after the head and after each chunk */
async function readAt(restMs: number, answer: Readable): Promise<Buffer> {
  const chunks: Buffer[] = []
  if (restMs > 0) await sleep(20 * restMs)
  for await (const chunk of answer) {
    chunks.push(chunk)
    if (restMs > 0) await sleep(restMs)
  }
  return Buffer.concat(chunks)
}
