import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { SqliteStore } from '../../clients/typescript/src/index.ts'
import { type Column, columnsOf } from '../../src/schemas/fields.ts'
import { lists } from '../../src/schemas/lists.ts'

/** Makes a row whose value of each field is its path, and reads it through the view of its list. */
function valuesOfView(view: string, fields: Column[]): unknown[] {
  const db = new DatabaseSync(':memory:')
  new SqliteStore(db, 'mine')
  const item: Record<string, unknown> = {}
  for (const { path, group } of fields) {
    if (group === undefined) item[path] = path
    else
      item[group.name] = { ...Object(item[group.name]), [path.slice(group.name.length + 1)]: path }
  }
  db.prepare(
    `insert into investment_copy (id, connection, list, copy, cursor) values (1, 'mine', ?, 'current', '')`,
  ).run(view)
  db.prepare(`insert into investment_row values (1, 'id', ?)`).run(JSON.stringify(item))
  const row = db.prepare(`select * from ${view}`).get()
  db.close()
  return Object.values(row ?? {})
}

t.test('SqliteStore: its view of each list has each field of the schema', (t) => {
  for (const { table, item } of lists) {
    const fields = columnsOf(item)
    const paths = fields.map(({ path }) => path)
    // The view of orders is `transfer_orders`.
    const view = `${table.replace('assets_', '')}s`
    const values = valuesOfView(view, fields).filter((value) => paths.includes(String(value)))
    t.same(values.sort(), paths.sort(), view)
  }
  t.end()
})
