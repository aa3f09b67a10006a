import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { sql } from 'kysely'
import t from 'tap'
import { operatorHere } from '../operator/operator-process.ts'
import { addAwkwardRows } from '../support/awkward-rows.ts'
import { addCaller, addConnection } from '../support/rows.ts'
import { startService } from '../support/service.ts'

const service = await startService(t)
const { db, get } = service
const caller = await addCaller(db)
const folder = t.testdir({})

const LISTS = {
  portfolio: { table: 'portfolio_transaction', type: 'portfolio-transactions' },
  account: { table: 'account_transaction', type: 'account-transactions' },
} as const
const FORMATS = { ndjson: 'application/x-ndjson', csv: 'text/csv' }

/** Rows of a connection with all columns as text, except the connection and the number of the change. */
async function rowsOf(table: string, { id }: { id: string }): Promise<string[]> {
  const { rows } = await sql<{ row: string }>`
    select (to_jsonb(t) - 'connection_id' - 'change_number')::text as row
    from ${sql.table(table)} t where connection_id = ${id} order by row`.execute(db)
  return rows.map(({ row }) => row)
}

for (const list of ['portfolio', 'account'] as const) {
  const { table, type } = LISTS[list]
  await addAwkwardRows(db, caller.connection, list)
  for (const [format, accept] of Object.entries(FORMATS)) {
    t.test(`${list}, ${accept}: an import of the export has equal tables`, async (t) => {
      const { token, connection } = caller
      const exported = await get(connection[list], { token, headers: { accept } })
      t.equal(exported.status, 200)
      const file = join(folder, `${list}.${format}`)
      await writeFile(file, exported.text)

      const other = await addConnection(db, caller.appId)
      const rows = await rowsOf(table, connection)
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
