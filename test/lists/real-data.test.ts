import { randomUUID } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openInput } from '../../src/operator/inputs.ts'
import { importRows } from '../../src/operator/loading/import-rows.ts'
import { AccountTransactions } from '../../src/schemas/account-transaction.ts'
import { PortfolioTransactions } from '../../src/schemas/portfolio-transaction.ts'
import { TransferOrders } from '../../src/schemas/transfer-order.ts'
import { openPool } from '../support/database.ts'
import { type Digits, parseExact } from '../support/exact-json.ts'
import { modelPage } from '../support/model/pages.ts'
import { addCaller, type Caller } from '../support/rows.ts'
import { type Service, startService } from '../support/service.ts'

/**
 * Imports statements, one folder a source, and compares them with the responses. Real statements are not
 * in the repository: REAL_DATA_DIR is their folder. A small generated source is always compared, which
 * tests the comparison.
 */
const folder = process.env.REAL_DATA_DIR

type Row = Record<string, unknown>

const rowTypes = {
  'portfolio-transactions': { endpoint: 'portfolio', ...PortfolioTransactions },
  'account-transactions': { endpoint: 'account', ...AccountTransactions },
  'transfer-orders': { endpoint: 'orders', ...TransferOrders },
} as const

/** Few rows a page, so that real data has several pages. */
const LIMIT = 40

type RowTypeName = keyof typeof rowTypes

t.setTimeout(240_000)
const service = await startService(t)
const pool = openPool(t, service.databaseUrl, { max: 1 })

// tap ends the file when its last known test ends, so all sources are read before the first test.
const generated = t.testdir({ generated: generatedFiles() })
const generatedSources = await sourcesIn(generated)
const realSources = folder === undefined ? [] : await sourcesIn(folder)
compareAll(generated, generatedSources)
if (folder === undefined) t.comment('REAL_DATA_DIR is not set: no real data was compared')
else compareAll(folder, realSources)

/** Digits beyond a float, missing fields, and more than one page. */
function generatedFiles(): Record<string, string> {
  const day = '"operationDateDay":"2024-02-29"'
  const portfolio = Array.from({ length: LIMIT + 1 }, () => {
    const ids = `"transactionId":"${randomUUID()}","portfolioId":"${randomUUID()}"`
    return `{${ids},"type":"BUY","amount":-123456789012345678901.10000000000000000010,${day}}`
  })
  const ids = `"movementId":"${randomUUID()}","accountId":"${randomUUID()}"`
  return {
    'portfolio-transactions.ndjson': `${portfolio.join('\n')}\n`,
    'account-transactions.ndjson': `{${ids},"type":"FEES","amount":0.00,"description":"ñ\\n",${day}}`,
    'transfer-orders.ndjson': `{"id":"${randomUUID()}","titles":1.0}\n`,
  }
}

function compareAll(folder: string, sources: string[]): void {
  let compared = 0
  for (const source of sources) {
    t.test(`${source}: responses have every row, field and digit of the files`, async (t) => {
      const caller = await addCaller(service.db)
      const files = await readdir(join(folder, source))
      for (const type of Object.keys(rowTypes) as RowTypeName[]) {
        if (!files.includes(`${type}.ndjson`)) continue
        const path = join(folder, source, `${type}.ndjson`)
        const sources = [await openInput(path)]
        await importRows(pool, { type, connectionId: caller.connection.id, sources })
        compared += await compare(t, service, caller, type, await rowsIn(path))
      }
    })
  }
  t.test('all files: every row was compared', async (t) => {
    let lines = 0
    for (const source of sources) {
      for (const file of await readdir(join(folder, source))) {
        lines += (await rowsIn(join(folder, source, file))).length
      }
    }
    t.ok(lines > 0)
    t.equal(compared, lines)
    t.comment(`${compared} rows of ${sources.length} sources compared`)
  })
}

/** Names of the folders with statements. */
async function sourcesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true })
  return entries
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .toSorted()
}

async function rowsIn(path: string): Promise<Row[]> {
  const text = await readFile(path, 'utf8')
  return text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map(parseExact)
}

/** Compares the responses with the rows of a file, in the order of contract 8, page by page. */
async function compare(
  t: Test,
  service: Service,
  caller: Caller,
  type: RowTypeName,
  rows: Row[],
): Promise<number> {
  const fields = Object.keys(rowTypes[type].item.properties)
  const expected = inOrder(type, rows).map((row) => {
    const unknown = Object.keys(row).filter((name) => !fields.includes(name))
    t.strictSame(unknown, [], 'the API has every field of the file')
    // A field that the file omits is null.
    return Object.fromEntries(fields.map((name) => [name, row[name] ?? null]))
  })
  const found = await readAll(t, service, caller, type, rows.length)
  t.equal(found.length, expected.length, type)
  for (const [i, row] of expected.entries()) {
    t.equal(JSON.stringify(found[i]), JSON.stringify(row), `${type} ${row[rowTypes[type].id]}`)
  }
  return found.length
}

/** Orders rows by contract 8. Orders without a completion get the time of the import, so ids decide. */
function inOrder(type: RowTypeName, rows: Row[]): Row[] {
  const { id } = rowTypes[type]
  const byId = new Map(rows.map((row) => [String(row[id]), row]))
  const isOrder = type === 'transfer-orders'
  const placed = rows.map((row) => ({
    id: String(row[id]),
    operationDateDay: isOrder ? '2025-01-01' : ((row.operationDateDay ?? null) as string | null),
    valueDateDay: (row.valueDateDay ?? null) as string | null,
    operationDateHour: (row.operationDateHour ?? null) as string | null,
    description: null,
    amount: '0',
  }))
  const { items } = modelPage(placed, { limit: rows.length })
  return items.map((item) => byId.get(item.id) as Row)
}

async function readAll(
  t: Test,
  { get }: Service,
  { token, connection }: Caller,
  type: RowTypeName,
  total: number,
): Promise<Row[]> {
  const path = connection[rowTypes[type].endpoint]
  if (type === 'transfer-orders') return parseExact((await get(path, { token })).text)
  const rows: Row[] = []
  for (let page = 0; page * LIMIT < total; page += 1) {
    const { text } = await get(`${path}?limit=${LIMIT}&page=${page}`, { token })
    const response = parseExact(text) as { items: Row[]; totalItems: Digits }
    t.equal(response.totalItems.digits, String(total))
    rows.push(...response.items)
  }
  return rows
}
