import type { Socket } from 'node:net'
import { sql } from 'kysely'
import t from 'tap'
import { importRows } from '../../src/operator/loading/import-rows.ts'
import { openPool } from '../support/database.ts'
import { portfolioLine, prepareImport } from '../support/importing.ts'
import { forward, startTcpProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'

const CHUNK_ROWS = 20
const CHUNKS = 120
const description = `"description":"${'x'.repeat(9_000)}"`

t.test('Stalled database: reading of the file stops, then resumes', async (t) => {
  const { url, db, newConnection } = await prepareImport(t)
  const { id } = await newConnection()
  const clients: Socket[] = []
  const through = await startTcpProxy(t, url, (client) => {
    clients.push(client)
    forward(client, url)
  })
  const pool = openPool(t, through.href, { max: 1 })
  let chunks = 0
  async function* source() {
    for (; chunks < CHUNKS; chunks += 1) {
      if (chunks === 10) for (const client of clients) client.pause()
      const ids = Array.from({ length: CHUNK_ROWS }, (_, index) => chunks * CHUNK_ROWS + index)
      yield Buffer.from(`${ids.map((row) => portfolioLine(row, description)).join('\n')}\n`)
    }
  }
  const sources = [{ name: 'rows', chunks: source() }]
  const done = importRows(pool, { type: 'portfolio-transactions', connectionId: id, sources })
  await until('the proxy is paused', () => chunks > 10)
  // Without a limit, it would read all chunks during these statements.
  for (let statement = 0; statement < 500; statement += 1) await sql`select 1`.execute(db)
  // Socket buffers take a few megabytes; a chunk has 180 kilobytes.
  t.ok(chunks < CHUNKS / 2, `${chunks} of ${CHUNKS} chunks read`)
  for (const client of clients) client.resume()
  t.match((await done).counts, { inserted: CHUNKS * CHUNK_ROWS })
})
