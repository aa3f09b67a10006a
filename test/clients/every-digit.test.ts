import { randomUUID } from 'node:crypto'
import { globSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import t from 'tap'
import { importRows } from '../../src/operator/loading/import-rows.ts'
import { readChunks } from '../../src/operator/loading/source.ts'
import { type Access, type Driver, type Row, startDrivers } from '../support/clients/drivers.ts'
import { accessOf, digitsAsText } from '../support/clients/service.ts'
import { openPool } from '../support/database.ts'
import { parseExact } from '../support/exact-json.ts'
import { addCaller } from '../support/rows.ts'
import { startService } from '../support/service.ts'

/**
 * Imports statements, and compares them with the rows that the clients return. Real statements are not
 * in the repository: REAL_DATA_DIR is their folder. A small generated file is always compared.
 */
const folder = process.env.REAL_DATA_DIR
const service = await startService(t)
const pool = openPool(t, service.databaseUrl, { max: 1 })
const clients = startDrivers(t)

const types = {
  'portfolio-transactions': {
    id: 'transactionId',
    read: (client: Driver, access: Access) => client.list(access, 'portfolio'),
  },
  'account-transactions': {
    id: 'movementId',
    read: (client: Driver, access: Access) => client.list(access, 'account'),
  },
  'transfer-orders': {
    id: 'id',
    read: (client: Driver, access: Access) => client.orders(access),
  },
} as const
const typeNames = Object.keys(types) as (keyof typeof types)[]

const day = '"operationDateDay":"2024-02-29"'
const generated = t.testdir({
  source: {
    'portfolio-transactions.ndjson': `{"transactionId":"${randomUUID()}","portfolioId":"${randomUUID()}","type":"BUY","amount":-123456789012345678901.10000000000000000010,"retentionDetail":{"retentionFrom":0.0,"retentionTo":7},${day}}`,
    'account-transactions.ndjson': `{"movementId":"${randomUUID()}","accountId":"${randomUUID()}","type":"FEES","amount":0.00,"description":"ñ\\n",${day}}`,
    'transfer-orders.ndjson': `{"id":"${randomUUID()}","titles":1.0}\n`,
  },
})

interface Imported {
  access: Access
  rows: Map<keyof typeof types, Row[]>
}

// tap ends the file when its last known test ends, so all files are imported before the first test.
const folders: [string, Imported][] = [['generated', await importFolder(generated)]]
if (folder === undefined) t.comment('REAL_DATA_DIR is not set: no real data was compared')
else folders.push(['real', await importFolder(folder)])

for (const [name, { access, rows: expected }] of folders) {
  for (const [language, client] of Object.entries(clients)) {
    t.test(`${language}, ${name} data: every row, field and digit of the files`, async (t) => {
      for (const type of typeNames) {
        const { id, read } = types[type]
        const wanted = new Map((expected.get(type) ?? []).map((row) => [row[id], row]))
        const rows = await read(client, access)
        t.equal(rows.length, wanted.size, type)
        const different = rows.filter((row) => !isSame(row, wanted.get(row[id])))
        t.strictSame(different, [], `${rows.length} rows of ${type}`)
      }
    })
  }
}

/** Imports all files of a folder into one connection. */
async function importFolder(folder: string): Promise<Imported> {
  const caller = await addCaller(service.db)
  const rows: Imported['rows'] = new Map()
  for (const type of typeNames) {
    const paths = globSync(`${folder}/*/${type}.ndjson`)
    const sources = paths.map((path) => ({ name: path, chunks: readChunks(path) }))
    await importRows(pool, { type, connectionId: caller.connection.id, sources })
    rows.set(type, (await Promise.all(paths.map(rowsIn))).flat())
  }
  if ([...rows.values()].flat().length === 0) throw new Error(`${folder} has no rows to compare`)
  return { access: { ...accessOf(service, caller), pageSize: 100 }, rows }
}

async function rowsIn(path: string): Promise<Row[]> {
  const lines = (await readFile(path, 'utf8')).split('\n').filter((line) => line.trim() !== '')
  return lines.map((line) => digitsAsText(parseExact(line)) as Row)
}

/** Compares a row with a row of a file. A field that the file omits is null. */
function isSame(row: Row, wanted: Row | undefined): boolean {
  const names = Object.keys(row)
  return (
    wanted !== undefined &&
    Object.keys(wanted).every((name) => names.includes(name)) &&
    names.every((name) => JSON.stringify(row[name]) === JSON.stringify(wanted[name] ?? null))
  )
}
