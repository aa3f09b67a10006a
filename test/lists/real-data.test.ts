import { randomUUID } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import t, { type Test } from 'tap'
import { importRows } from '../../src/operator/import/import-rows.ts'
import { readChunks } from '../../src/operator/import/source.ts'
import { AccountTransaction } from '../../src/schemas/account-transaction.ts'
import { PortfolioTransaction } from '../../src/schemas/portfolio-transaction.ts'
import { AssetsTransferOrder } from '../../src/schemas/transfer-order.ts'
import { type Digits, parseExact } from '../support/exact-json.ts'
import { addCaller, type Caller } from '../support/rows.ts'
import { type Service, startService } from '../support/service.ts'
import { modelPage } from './model.ts'

/**
 * Statements, one folder a source, go in through the import and come back over HTTP. Real ones are not a
 * part of the project: REAL_DATA_DIR says where they are. A small made-up source is always compared, so
 * that the comparison itself is known to work.
 */
const folder = process.env.REAL_DATA_DIR

type Row = Record<string, unknown>

const kinds = {
  'portfolio-transactions': {
    endpoint: 'portfolio',
    id: 'transactionId',
    item: PortfolioTransaction,
  },
  'account-transactions': { endpoint: 'account', id: 'movementId', item: AccountTransaction },
  'transfer-orders': { endpoint: 'orders', id: 'id', item: AssetsTransferOrder },
} as const

/** Rows a page: few, so that real data goes over the edges of pages. */
const LIMIT = 40

type ImportTypeName = keyof typeof kinds

t.setTimeout(240_000)
const service = await startService(t)
const pool = new pg.Pool({ connectionString: service.databaseUrl, max: 1 })
t.teardown(() => pool.end())

// Both are looked into before the first test runs, which would otherwise end the file when it ends.
const made = t.testdir({ 'made-up': madeUp() })
const sourcesMade = await sourcesIn(made)
const sourcesReal = folder === undefined ? [] : await sourcesIn(folder)
compareAll(made, sourcesMade)
if (folder === undefined) t.comment('REAL_DATA_DIR is not set: no real data was compared')
else compareAll(folder, sourcesReal)

/** Digits that no float has, fields that are not told, pages with an edge. */
function madeUp(): Record<string, string> {
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
    t.test(`${source}: every row, field and digit comes back as in the file`, async (t) => {
      const caller = await addCaller(service.db)
      const files = await readdir(join(folder, source))
      for (const kind of Object.keys(kinds) as ImportTypeName[]) {
        if (!files.includes(`${kind}.ndjson`)) continue
        const path = join(folder, source, `${kind}.ndjson`)
        const sources = [{ name: path, chunks: readChunks(path) }]
        await importRows(pool, { kind, connectionId: caller.connection.id, sources })
        compared += await compare(t, service, caller, kind, await rowsIn(path))
      }
    })
  }
  t.test('No row of any file was left out', async (t) => {
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

/** The folders that hold records. */
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

/** Compares what the service has with the rows of a file, in the published order, page by page. */
async function compare(
  t: Test,
  service: Service,
  caller: Caller,
  kind: ImportTypeName,
  rows: Row[],
): Promise<number> {
  const fields = Object.keys(kinds[kind].item.properties)
  const wanted = inOrder(kind, rows).map((row) => {
    const unknown = Object.keys(row).filter((name) => !fields.includes(name))
    t.strictSame(unknown, [], 'the API has every field of the file')
    // What the file leaves out is not known.
    return Object.fromEntries(fields.map((name) => [name, row[name] ?? null]))
  })
  const found = await readAll(t, service, caller, kind, rows.length)
  t.equal(found.length, wanted.length, kind)
  for (const [i, row] of wanted.entries()) {
    t.equal(JSON.stringify(found[i]), JSON.stringify(row), `${kind} ${row[kinds[kind].id]}`)
  }
  return found.length
}

/** As contract 8 says; orders that do not tell are completed now, all at once, and go by their ids. */
function inOrder(kind: ImportTypeName, rows: Row[]): Row[] {
  const { id } = kinds[kind]
  const byId = new Map(rows.map((row) => [String(row[id]), row]))
  const isOrder = kind === 'transfer-orders'
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
  kind: ImportTypeName,
  total: number,
): Promise<Row[]> {
  const path = connection[kinds[kind].endpoint]
  if (kind === 'transfer-orders') return parseExact((await get(path, { token })).text)
  const rows: Row[] = []
  for (let page = 0; page * LIMIT < total; page += 1) {
    const { text } = await get(`${path}?limit=${LIMIT}&page=${page}`, { token })
    const answer = parseExact(text) as { items: Row[]; totalItems: Digits }
    t.equal(answer.totalItems.digits, String(total))
    rows.push(...answer.items)
  }
  return rows
}
