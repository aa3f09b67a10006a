/** In place of the program `duckdb -csv`, which neither npm nor Debian has: runs SQL of the standard input. */
import { text } from 'node:stream/consumers'
import { DuckDBInstance } from '@duckdb/node-api'

const database = await (await DuckDBInstance.create()).connect()
for (const statement of (await text(process.stdin)).split(/;\n/)) {
  if (statement.trim() === '') continue
  const result = await database.runAndReadAll(statement)
  // The program prints no result of `create`.
  if (!/^select/m.test(statement)) continue
  for (const row of [result.columnNames(), ...result.getRows()])
    process.stdout.write(`${row.map(String).join(',')}\n`)
}
