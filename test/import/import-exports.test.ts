import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { sql } from 'kysely'
import t from 'tap'
import { EXPORT_PAGE } from '../../src/queries/pages.ts'
import { addAwkwardRows } from '../support/awkward-rows.ts'
import { operatorHere } from '../support/operator-process.ts'
import { addCaller, addConnection, lists } from '../support/rows.ts'
import { startService } from '../support/service.ts'

const service = await startService(t)
const { db, get } = service
const caller = await addCaller(db)
const folder = t.testdir({})

const COLUMNS = {
  portfolio: [lists.portfolio.idColumn, 'portfolio_id'],
  account: [lists.account.idColumn, 'account_id'],
} as const
const FORMATS = [
  ['ndjson', 'application/x-ndjson'],
  ['ndjson', 'application/x-ndjson;IEEE754Compatible=true'],
  ['csv', 'text/csv'],
] as const

/** Rows of a connection with all columns as text, except the connection and the number of the change. */
async function rowsOf(table: string, { id }: { id: string }): Promise<string[]> {
  const { rows } = await sql<{ row: string }>`
    select (to_jsonb(t) - 'connection_id' - 'change_number')::text as row
    from ${sql.table(table)} t where connection_id = ${id} order by row`.execute(db)
  return rows.map(({ row }) => row)
}

/** Adds rows with different decimals, so that an export has several blocks. */
async function addBlocks(table: string, columns: readonly string[]): Promise<void> {
  const names = [...columns, 'type', 'operation_date_day', 'amount', 'commission', 'description']
  await sql`insert into ${sql.table(table)} (connection_id, ${sql.join(names.map(sql.ref))})
    select ${caller.connection.id}, gen_random_uuid(), gen_random_uuid(), 'UNKNOWN',
      date '2020-01-01' + n / 100, sqrt(n::numeric), (n * 1000000007::numeric) ^ -1, 'row ' || n
    from generate_series(1, ${EXPORT_PAGE}::integer) as n`.execute(db)
}

for (const list of ['portfolio', 'account'] as const) {
  await addAwkwardRows(db, caller.connection, list)
  await addBlocks(lists[list].table, COLUMNS[list])
}

for (const list of ['portfolio', 'account'] as const) {
  const { table, name: type } = lists[list]
  for (const [format, accept] of FORMATS) {
    t.test(`${list}, ${accept}: an import of the export has equal tables`, async (t) => {
      const { token, connection } = caller
      const exported = await get(connection[list], { token, headers: { accept } })
      t.equal(exported.status, 200)
      const file = join(folder, `${list}.${format}`)
      await writeFile(file, exported.text)

      const other = await addConnection(db, caller.appId)
      const rows = await rowsOf(table, connection)
      t.ok(rows.length > EXPORT_PAGE)
      const importInto = async (id: string) => {
        const options = ['--connection', id, '--format', format, '--json', file]
        const settings = { DATABASE_URL: service.databaseUrl }
        const ended = await operatorHere(['import', type, ...options], settings)
        t.equal(ended.stderr, '')
        return ended.json()
      }
      t.match(await importInto(other.id), { inserted: rows.length, updated: 0 })
      t.strictSame(await rowsOf(table, other), rows)
      t.match(await importInto(connection.id), { updated: 0, unchanged: rows.length })

      const again = await get(other[list], { token, headers: { accept } })
      t.equal(again.text, exported.text, 'an export of the copy has the same bytes')
    })
  }
}
