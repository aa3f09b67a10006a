import t from 'tap'
import { parseExact } from '../support/exact-json.ts'
import { history, type Step } from '../support/model/arbitraries.ts'
import { type ModelQuery, type ModelRow, modelPage } from '../support/model/pages.ts'
import { fc, runs } from '../support/random.ts'
import { addCaller, type Caller, type List, listNames, lists } from '../support/rows.ts'
import { type ServiceResponse, startService } from '../support/service.ts'

// Hundreds of requests take longer than tap's default limit.
t.setTimeout(240_000)

const { db, get } = await startService(t)

/** A connection in the database and in the model, which get the same changes and requests. */
interface Both {
  list: List
  caller: Caller
  rows: ModelRow[]
  /** Number of changes. */
  changes: number
  /** Last ETag of each path, and the number of changes before it. */
  lastTags: Map<string, { changes: number; etag: string }>
}

/** Applies a step. Counts a change only if it writes a row, even with the same values. */
async function apply(both: Both, step: Step): Promise<void> {
  if (step.type === 'read') return read(both, step.query)
  if (step.type === 'walk') return walk(both, step.query)
  if (step.type === 'add') {
    const known = new Set(both.rows.map(({ id }) => id))
    const fresh = step.rows.filter(({ id }) => !known.has(id))
    if (fresh.length === 0) return
    const columns = fresh.map((row) => ({ [lists[both.list].idColumn]: row.id, ...columnsOf(row) }))
    await lists[both.list].add(db, both.caller.connection, ...columns)
    both.rows.push(...fresh)
  } else {
    if (both.rows.length === 0) return
    const table = lists[both.list].table as 'portfolio_transaction'
    const column = lists[both.list].idColumn as 'transaction_id'
    const pick = (number: number) => both.rows[number % both.rows.length] as ModelRow
    if (step.type === 'remove') {
      const gone = new Set(step.picks.map((number) => pick(number).id))
      await db
        .deleteFrom(table)
        .where(column, 'in', [...gone])
        .execute()
      both.rows = both.rows.filter(({ id }) => !gone.has(id))
    } else {
      const row = pick(step.pick)
      await db.updateTable(table).set(columnsOf(step.into)).where(column, '=', row.id).execute()
      Object.assign(row, step.into)
    }
  }
  both.changes += 1
}

function columnsOf(row: Omit<ModelRow, 'id'>) {
  return {
    operation_date_day: row.operationDateDay,
    value_date_day: row.valueDateDay,
    operation_date_hour: row.operationDateHour,
    description: row.description,
    amount: row.amount,
  }
}

function addressOf({ list, caller }: Both, query: ModelQuery): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined)
  const search = new URLSearchParams(
    given.map(([name, value]): [string, string] => [name, String(value)]),
  )
  return `${caller.connection[list]}?${search}`
}

/** Response in the form of the model. */
function pageOf({ text }: ServiceResponse, list: List) {
  const { items, limit, page, totalItems } = parseExact(text)
  const rows = items.map((item: Record<string, unknown>) => ({
    id: item[lists[list].id],
    operationDateDay: item.operationDateDay,
    valueDateDay: item.valueDateDay,
    operationDateHour: item.operationDateHour,
    description: item.description,
    amount: (item.amount as { digits: string }).digits,
  }))
  const [number, count, total] = [limit, page, totalItems].map(({ digits }) => Number(digits))
  return { items: rows, limit: number, page: count, totalItems: total }
}

async function read(both: Both, query: ModelQuery): Promise<void> {
  const path = addressOf(both, query)
  const { token } = both.caller
  const response = await get(path, { token })
  same(pageOf(response, both.list), modelPage(both.rows, query))
  await checkTag(both, path, String(response.headers.get('etag')))
}

/** Checks that the ETag is the last one if and only if nothing changed since. */
async function checkTag(both: Both, path: string, etag: string): Promise<void> {
  const last = both.lastTags.get(path)
  const { token } = both.caller
  if (last) {
    const unchanged = last.changes === both.changes
    same(etag === last.etag, unchanged)
    const again = await get(path, { token, headers: { 'if-none-match': last.etag } })
    same(again.status, unchanged ? 304 : 200)
  }
  both.lastTags.set(path, { changes: both.changes, etag })
}

/** Checks that all pages of one size contain every row once, in order. */
async function walk(both: Both, { from, to, limit = 5 }: ModelQuery): Promise<void> {
  const whole = modelPage(both.rows, { from, to, limit: both.rows.length + 1 }).items
  const rows: unknown[] = []
  for (let page = 0; page * limit < whole.length; page += 1) {
    const path = addressOf(both, { from, to, limit, page })
    const response = pageOf(await get(path, { token: both.caller.token }), both.list)
    same(response.totalItems, whole.length)
    rows.push(...response.items)
  }
  same(rows, whole)
}

/** @throws Error, with which fast-check shrinks the history */
function same(found: unknown, expected: unknown): void {
  const [a, b] = [found, expected].map((value) => JSON.stringify(value, null, 1))
  if (a !== b) throw new Error(`service:\n${a}\nmodel:\n${b}`)
}

const promise = 'filter, order, pages, totals and ETags match a model'

for (const list of listNames) {
  t.test(`${list}: ${promise} (contract 3, 4, 6, 8, 9, 24)`, { timeout: 200_000 }, async (t) => {
    const property = fc.asyncProperty(history, async (steps) => {
      const caller = await addCaller(db)
      const both: Both = { list, caller, rows: [], changes: 0, lastTags: new Map() }
      for (const step of structuredClone(steps)) await apply(both, step)
      // Two equal requests without a change between them, after every history.
      await read(both, {})
      await read(both, {})
    })
    await fc.assert(property, { numRuns: runs(40) })
    t.pass('random histories')
  })
}
