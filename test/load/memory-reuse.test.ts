import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual, promisify } from 'node:util'
import { brotliDecompress, gunzip, zstdDecompress } from 'node:zlib'
import t from 'tap'
import { randomOf } from '../support/random.ts'
import {
  addApp,
  addCaller,
  addConnection,
  addPortfolioTransactions,
  addToken,
} from '../support/rows.ts'
import { startService } from '../support/service.ts'

/*
 * Responses reuse the memory of earlier ones, and large ones reuse one chunk while they are sent.
 * Each client must get its own response, at any reading speed and in any encoding.
 */

const CONNECTIONS = 4
/** Enough for thirty chunks, which are made while they are sent. */
const ROWS = 1_600
const LIMITS = [3, 20, 200, 400, 700, 1_000, ROWS]
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

t.test('concurrent responses: each client gets its own bytes', async (t) => {
  const appId = await addApp(db)
  const token = await addToken(db, appId)
  const golden: GoldenResponse[] = []
  for (let connection = 0; connection < CONNECTIONS; connection += 1) {
    const added = await addConnection(db, appId)
    // A statement takes at most 65,535 parameters.
    for (let part = 0; part < ROWS; part += 800)
      await addPortfolioTransactions(db, added, ...rowsOf(connection, part, 800))
    for (const limit of LIMITS) {
      const path = `${added.portfolio}?limit=${limit}`
      const { items } = (await get(path, { token })).json()
      const descriptions = items.map((item: { description: string }) => item.description)
      const expected = Array.from({ length: limit }, (_, row) => descriptionOf(connection, row))
      if (!isDeepStrictEqual(descriptions, expected))
        throw new Error(`${path} is wrong without load`)
      golden.push({ path, limit, text: (await get(path, { token })).text })
    }
  }
  const counts = { whole: 0, chunked: 0, aborted: 0 }
  const wrong: string[] = []
  const until = performance.now() + FOR_MS
  const client = async (number: number) => {
    const { chance, oneOf } = randomOf(`client ${number}`)
    while (performance.now() < until) {
      const { path, limit, text } = oneOf(golden)
      const encoding = oneOf(ENCODINGS)
      const accepts = encoding === 'identity' ? {} : { 'accept-encoding': encoding }
      const headers = { authorization: `Bearer ${token}`, ...accepts }
      const response = await send(path, headers)
      if (chance(0.1)) {
        response.destroy()
        counts.aborted += 1
        continue
      }
      const body = await readAt(oneOf([0, 0, 0, 10]), response)
      if (response.statusCode === 503) continue
      const right = Buffer.from(text).equals(await decoders[encoding](body))
      if (!right) wrong.push(`${path} in ${encoding}`)
      counts[limit === ROWS ? 'chunked' : 'whole'] += 1
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, (_, number) => client(number)))
  t.comment(counts)
  t.same(wrong.slice(0, 3), [])
  for (const [what, count] of Object.entries(counts)) t.ok(count > 0, what)
})

t.test('HEAD of one app: the response of another app is unchanged', async (t) => {
  // The rest of the first response is still being made when the second one begins.
  const first = await callerWith('of the first app ', 800, 9_000)
  const second = await callerWith('of the second ', 800, 9_000)
  const { text } = await get(second.path, second)
  for (let round = 0; round < 4; round += 1) {
    const heads = Array.from({ length: 4 }, async () => {
      const head = await send(first.path, bearer(first), 'HEAD')
      t.equal(head.resume().statusCode, 200)
    })
    const reads = [0, 20, 40, 80].map(async (ms) => {
      await sleep(ms)
      const body = await readAt(5, await send(second.path, bearer(second)))
      t.ok(body.equals(Buffer.from(text)), 'the body is the golden one')
      t.notOk(body.includes('of the first app'))
    })
    await Promise.all([...heads, ...reads])
  }
})

const bearer = ({ token }: { token: string }) => ({ authorization: `Bearer ${token}` })

/** Adds an app whose connection has `count` rows that contain the mark. */
async function callerWith(mark: string, count: number, length: number) {
  const { token, connection } = await addCaller(db)
  for (let part = 0; part < count; part += 800) {
    const rows = Array.from({ length: 800 }, (_, row) => ({
      ...dayOf(part + row),
      description: `${mark}${part + row} `.padEnd(length, mark),
    }))
    await addPortfolioTransactions(db, connection, ...rows)
  }
  return { token, path: connection.portfolio }
}

/** Response to a request without concurrent requests. */
interface GoldenResponse {
  path: string
  limit: number
  text: string
}

/** Row 0 is the newest, so it is first in the list. */
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

/** Sends no Accept-Encoding, unless the headers have it. */
async function send(
  path: string,
  headers: Record<string, string>,
  method = 'GET',
): Promise<IncomingMessage> {
  const sent = request({ port, host: '127.0.0.1', path, method, headers, agent: false }).end()
  const [response] = await once(sent, 'response')
  return response
}

/** @param restMs pause before each read, in ms */
async function readAt(restMs: number, response: Readable): Promise<Buffer> {
  const chunks: Buffer[] = []
  if (restMs > 0) await sleep(20 * restMs)
  for await (const chunk of response) {
    chunks.push(chunk)
    if (restMs > 0) await sleep(restMs)
  }
  return Buffer.concat(chunks)
}
