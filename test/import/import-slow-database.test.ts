import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { importRows } from '../../src/operator/loading/import-rows.ts'
import { openPool } from '../support/database.ts'
import { portfolioLine, prepareImport } from '../support/importing.ts'

const CHUNK_ROWS = 20
const CHUNKS = 120
const description = `"description":"${'x'.repeat(9_000)}"`

t.test('Stalled database: reading of the file stops, then resumes', async (t) => {
  const { url, newConnection } = await prepareImport(t)
  const { id } = await newConnection()
  const line = await openLine(new URL(url))
  t.teardown(line.close)
  const pool = openPool(t, line.url, { max: 1 })
  let chunks = 0
  async function* source() {
    for (; chunks < CHUNKS; chunks += 1) {
      if (chunks === 10) line.pause()
      const ids = Array.from({ length: CHUNK_ROWS }, (_, index) => chunks * CHUNK_ROWS + index)
      yield Buffer.from(`${ids.map((row) => portfolioLine(row, description)).join('\n')}\n`)
    }
  }
  const sources = [{ name: 'rows', chunks: source() }]
  const done = importRows(pool, { type: 'portfolio-transactions', connectionId: id, sources })
  const stalled = await standstill(() => chunks)
  // Socket buffers take a few megabytes; a chunk has 180 kilobytes.
  t.ok(stalled >= 10 && stalled < CHUNKS / 2, `${stalled} of ${CHUNKS} chunks read`)
  line.resume()
  t.match((await done).counts, { inserted: CHUNKS * CHUNK_ROWS })
})

/** Returns a number once it is unchanged for half a second. */
async function standstill(read: () => number): Promise<number> {
  for (let before = -1; ; ) {
    await sleep(500)
    if (read() === before && before >= 10) return before
    before = read()
  }
}

/** Opens a proxy to the server that can be paused. */
async function openLine(server: URL) {
  const clients = new Set<Socket>()
  const hold = (held: boolean) => {
    for (const client of clients) held ? client.pause() : client.resume()
  }
  const proxy = createServer((client) => {
    clients.add(client)
    const upstream = connect(Number(server.port), server.hostname)
    client.pipe(upstream).pipe(client)
    for (const socket of [client, upstream]) socket.on('error', () => client.destroy())
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  const address = proxy.address()
  const url = new URL(server)
  url.hostname = '127.0.0.1'
  url.port = String(typeof address === 'object' && address?.port)
  return {
    url: url.href,
    pause: () => hold(true),
    resume: () => hold(false),
    close: () => {
      for (const client of clients) client.destroy()
      proxy.close()
    },
  }
}
