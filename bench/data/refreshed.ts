import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type pg from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import { copySql, copyWriter } from '../../src/operator/loading/import-rows.ts'
import { parseJson } from '../../src/operator/loading/json.ts'
import { Problems } from '../../src/operator/loading/problems.ts'
import { rowParser } from '../../src/operator/loading/row-parser.ts'
import { type ListProperty, type RowType, rowTypes } from '../../src/operator/loading/row-types.ts'
import { refreshLists } from './rows.ts'

/** Connections whose rows are copied at once. */
const BATCH = 20_000

/**
 * Writes the rows of the first day into many connections, without triggers: a refresh takes 20 times as long.
 * @param ids of the connections, in the order of their seeds
 */
export async function fillRefreshed(owner: pg.Pool, ids: string[]): Promise<void> {
  const client = await owner.connect()
  try {
    await fill(client, ids)
  } finally {
    client.release(true)
  }
}

async function fill(client: pg.ClientBase, ids: string[]): Promise<void> {
  await client.query('set session_replication_role = replica')
  for (let from = 0; from < ids.length; from += BATCH)
    for (const type of Object.values(rowTypes))
      await copyRows(client, type, ids.slice(from, from + BATCH), from)
  for (const list of ['portfolio_transaction', 'account_transaction'])
    for (const statement of [
      `insert into ${list}_month
       select connection_id, date_trunc('month', effective_day), count(*) from ${list}
       where connection_id = any ($1) group by 1, 2`,
      `update connection c set ${list}s = n.rows, data_version = 1
       from (select connection_id, sum(row_count) as rows from ${list}_month
         where connection_id = any ($1) group by 1) n
       where c.id = n.connection_id`,
    ])
      await client.query(statement, [ids])
}

async function copyRows(client: pg.ClientBase, type: RowType, ids: string[], first: number) {
  const columns = type.columns.map(({ name }) => name).join(', ')
  const target = type.hasChangeNumbers ? ', change_number' : ''
  const number = type.hasChangeNumbers
    ? ', (1::bigint << 31) + row_number() over (partition by line)'
    : ''
  await client.query(`
    create temporary table staged as select ${columns}, 0::bigint as line from ${type.table} with no data`)
  const problems = new Problems()
  const parser = rowParser(type, problems)
  const copyLine = copyWriter(type)
  function* text() {
    let lines = ''
    for (const index of ids.keys()) {
      const lists: Partial<Record<ListProperty, object[]>> = refreshLists(first + index, 0)
      for (const item of lists[type.list] ?? []) {
        const value = parseJson({ text: JSON.stringify(item) }, problems)
        const row = parser.parse(value)
        if (row === undefined) throw new Error(JSON.stringify(problems.shown))
        lines += copyLine(row, index + 1)
      }
      if (index % 100 < 99) continue
      yield lines
      lines = ''
    }
    yield lines
  }
  const copy = client.query(copyFrom(copySql('staged', type)))
  await pipeline(Readable.from(text()), copy)
  await client.query(
    `insert into ${type.table} (connection_id, ${columns}${target})
     select k.connection, ${columns}${number} from staged s
     join unnest($1::bigint[]) with ordinality k (connection, line) using (line)`,
    [ids],
  )
  await client.query('drop table staged')
}
