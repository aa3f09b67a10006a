import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { gunzipSync } from 'node:zlib'
import type { Test } from 'tap'
import { InvestmentData, SqliteStore } from '../../../clients/typescript/src/index.ts'
import { DEMO } from '../../../seeds/sample-data.ts'
import type { Row } from '../clients/drivers.ts'
import { readCopy, sorted } from '../clients/sqlite-copies.ts'
import { portfolioLine } from '../importing.ts'
import { operatorHere } from '../operator-process.ts'
import { COPY, type ReleasedClient } from './clients.ts'

const CONNECTION = 'DEMOSMALL1'
const { token } = DEMO.wealth

/**
 * Checks that the copy of a released client goes on with a service of this release: with this client and with the one of
 * today, before and after an import.
 * @param owner URL of the database, for the import
 */
export async function checkReleasedCopy(
  t: Test,
  client: ReleasedClient,
  url: string,
  owner: string,
): Promise<void> {
  const place = await mkdtemp(join(tmpdir(), 'copies-'))
  t.teardown(() => rm(place, { recursive: true }))
  const access = { url, token, connection: CONNECTION }
  const today = async (file: string) => {
    const db = new DatabaseSync(file)
    const api = new InvestmentData({ baseUrl: url, token })
    await api.connection(CONNECTION).syncTransactions(new SqliteStore(db, COPY))
    db.close()
  }
  const ways = { 'the same client': client.synchronize, 'the client of today': today }
  for (const [way, synchronize] of Object.entries(ways)) {
    const file = join(place, `${way}.db`)
    await writeFile(file, gunzipSync(await readFile(client.copy)))
    await synchronize(file, access)
    await compare(t, file, url, `${client.name}, ${way}`)
    await importRow(owner)
    await synchronize(file, access)
    await compare(t, file, url, `${client.name}, ${way}, after an import`)
  }
}

async function compare(t: Test, file: string, url: string, words: string): Promise<void> {
  const api = new InvestmentData({ baseUrl: url, token }).connection(CONNECTION)
  for (const list of ['portfolio', 'account'] as const) {
    const read = list === 'portfolio' ? api.portfolioTransactions() : api.accountTransactions()
    const rows: Row[] = []
    for await (const row of read) rows.push(row as unknown as Row)
    t.ok(rows.length > 0)
    t.strictSame(sorted(readCopy(file, COPY, list)), sorted(rows), `${words}: ${list}`)
  }
}

let imported = 0

/** Adds a row to the connection. */
async function importRow(owner: string): Promise<void> {
  const environment = { DATABASE_URL: owner }
  const listed = await operatorHere(
    ['connection', 'list', '--app', 'demo-wealth', '--json'],
    environment,
  )
  const { items } = listed.json() as { items: { id: string; label: string }[] }
  const id = String(items.find(({ label }) => label === 'A dozen rows')?.id)
  imported += 1
  const place = await mkdtemp(join(tmpdir(), 'rows-'))
  const file = join(place, 'rows.ndjson')
  await writeFile(file, portfolioLine(1_000 + imported))
  const { code, stderr } = await operatorHere(
    ['import', 'portfolio-transactions', '--connection', id, file],
    environment,
  )
  await rm(place, { recursive: true })
  if (code !== 0) throw new Error(stderr)
}
