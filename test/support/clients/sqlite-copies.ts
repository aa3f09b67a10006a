import { DatabaseSync } from 'node:sqlite'
import { lists } from '../rows.ts'
import type { ListName, Row } from './drivers.ts'

export const sorted = (rows: Row[]) => rows.map((row) => JSON.stringify(row)).sort()

/** Rows of the complete copy in a file of SQLite, as an app reads them. */
export function readCopy(file: string, name: string, list: ListName): Row[] {
  const sqlite = new DatabaseSync(file)
  const sql = `select id, row from ${list}_transactions where connection = ?`
  const found = sqlite.prepare(sql).all(name) as { id: string; row: string }[]
  sqlite.close()
  return found.map(({ id, row }) => {
    const parsed: Row = JSON.parse(row)
    if (parsed[lists[list].id] !== id) throw new Error(`the id of ${row} is ${id}`)
    return parsed
  })
}
