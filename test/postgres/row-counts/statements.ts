import { connectionKey, tokenHash } from '../../../src/postgres/tokens.ts'
import { columnOf } from '../../../src/schemas/fields.ts'
import { lists } from '../../../src/schemas/lists.ts'
import { fc } from '../../support/random.ts'
import { keySql } from '../../support/rows.ts'

/** A statement of a writer, and the connections whose rows it may change. */
export interface Statement {
  sql: string
  touches: string[]
  /** Standard input of COPY. */
  input?: string
}

/** Few values, so that writes conflict: the same row, the same day, the last row of a day. */
const connections = ['1', '2', '3', '4'].map((token) => connectionKey(tokenHash(token)))
const days = ['2024-02-29', '2025-01-01', '2025-01-02', '2025-12-31']

interface Row {
  connection: string
  id: number
  day: string
  currency: string
}

/** Each table with a column that its rows are listed by. */
const dayColumns = {
  portfolio_transaction: 'operation_date_day',
  account_transaction: 'value_date_day',
  assets_transfer_order: 'completed_at',
}
type Table = keyof typeof dayColumns
export const tableNames = Object.keys(dayColumns) as Table[]
const keyColumns = new Map<string, string>(lists.map(({ table, id }) => [table, columnOf(id)]))

/** @param ids rows that the statement may write; concurrent writers get different ones */
export function anyStatement(ids: number[]): fc.Arbitrary<Statement> {
  const rows = fc.uniqueArray(rowOf(ids), {
    selector: ({ connection, id }) => `${connection} ${id}`,
  })
  const table = fc.constantFrom(...tableNames)
  const where = fc.record({ connections: fc.subarray(connections), ids: fc.subarray(ids) })
  return fc.oneof(
    { weight: 3, arbitrary: fc.tuple(table, rows).map(insert) },
    { weight: 2, arbitrary: fc.tuple(table, rows).map(copy) },
    { weight: 2, arbitrary: fc.tuple(table, rows).map(upsert) },
    { weight: 2, arbitrary: fc.tuple(table, rows).map(merge) },
    { weight: 2, arbitrary: fc.tuple(table, where, rowOf(ids)).map(update) },
    { weight: 1, arbitrary: fc.tuple(table, where, rowOf(ids)).map(move) },
    { weight: 2, arbitrary: fc.tuple(table, where).map(remove) },
  )
}

/** Statements that lock several connections. */
export function wideStatement(ids: number[]): fc.Arbitrary<Statement> {
  const table = fc.constantFrom(...tableNames)
  const rows = fc.array(rowOf(ids), { minLength: 2, maxLength: 20 })
  const everywhere = fc.constant({ connections, ids })
  return fc.oneof(
    { weight: 2, arbitrary: fc.tuple(table, rows).map(insert) },
    { weight: 1, arbitrary: fc.tuple(table, everywhere, rowOf(ids)).map(update) },
    { weight: 1, arbitrary: fc.tuple(table, everywhere).map(remove) },
  )
}

/** Adds the missing connections to the only app. */
export const addConnections: Statement = {
  touches: connections,
  sql: `
    insert into connection (id, app_id, token_hash)
      select ${keySql('hash')}, app.id, hash
      from unnest(array['1', '2', '3', '4']) token, sha256(token::bytea) hash, app
      on conflict do nothing`,
}

/** Statements that change whole tables or connections. */
export const sweepingStatement: fc.Arbitrary<Statement> = fc.oneof(
  fc.constantFrom(...tableNames).map((name) => ({ sql: `truncate ${name}`, touches: connections })),
  fc.constantFrom(...connections).map((id) => ({
    sql: `delete from connection where id = ${id}`,
    touches: [id],
  })),
  fc.constant(addConnections),
)

function rowOf(ids: number[]): fc.Arbitrary<Row> {
  return fc.record({
    connection: fc.constantFrom(...connections),
    id: fc.constantFrom(...ids),
    day: fc.constantFrom(...days),
    currency: fc.constantFrom('EUR', 'USD'),
  })
}

function insert([table, rows]: [Table, Row[]]): Statement {
  const sql = `insert into ${table} (${columns(table)}) ${select(table, rows)} on conflict do nothing`
  return { sql, touches: touchedBy(rows) }
}

function upsert([table, rows]: [Table, Row[]]): Statement {
  const sql = `
    insert into ${table} (${columns(table)}) ${select(table, rows)}
      on conflict (connection_id, ${keyColumns.get(table)})
      do update set ${dayColumns[table]} = excluded.${dayColumns[table]}`
  return { sql, touches: touchedBy(rows) }
}

function copy([table, rows]: [Table, Row[]]): Statement {
  const lines = rows.map((row) => `${Object.values(values(table, row)).join('\t')}\n`)
  const sql = `copy ${table} (${columns(table)}) from stdin`
  return { sql, input: lines.join(''), touches: touchedBy(rows) }
}

/** Deletes rows, updates others and inserts the rest, in one statement. */
function merge([table, rows]: [Table, Row[]]): Statement {
  const [key, day] = [keyColumns.get(table), dayColumns[table]]
  const sql = `
    merge into ${table} t using (${select(table, rows)}) s
      on t.connection_id = s.connection_id and t.${key} = s.${key}
      when matched and s.currency = 'USD' then delete
      when matched then update set ${day} = s.${day}
      when not matched then insert (${columns(table)})
        values (${columns(table).map((column) => `s.${column}`)})`
  return { sql, touches: touchedBy(rows) }
}

interface Selection {
  connections: string[]
  ids: number[]
}

function update([table, where, { day, currency }]: [Table, Selection, Row]): Statement {
  const set = `${dayColumns[table]} = '${day}', currency = '${currency}'`
  const sql = `update ${table} set ${set} where ${condition(table, where)}`
  return { sql, touches: where.connections }
}

function move([table, where, to]: [Table, Selection, Row]): Statement {
  const set = `connection_id = ${to.connection}`
  const sql = `update ${table} set ${set} where ${condition(table, where)}`
  return { sql, touches: [...where.connections, to.connection] }
}

function remove([table, where]: [Table, Selection]): Statement {
  return {
    sql: `delete from ${table} where ${condition(table, where)}`,
    touches: where.connections,
  }
}

function condition(table: Table, { connections, ids }: Selection): string {
  const keys = ids.map((id) => `'${uuid(id)}'`)
  return `connection_id = any(array[${connections}]::bigint[])
    and ${keyColumns.get(table)} = any(array[${keys}]::uuid[])`
}

function select(table: Table, rows: Row[]): string {
  const json = JSON.stringify(rows.map((row) => values(table, row)))
  return `select ${columns(table)} from json_populate_recordset(null::${table}, '${json}')`
}

const columns = (table: Table) => Object.keys(values(table, nobody))

function values(table: Table, { connection, id, day, currency }: Row): Record<string, unknown> {
  const row = {
    connection_id: connection,
    [String(keyColumns.get(table))]: uuid(id),
    [dayColumns[table]]: day,
  }
  const common = { ...row, currency }
  if (table === 'portfolio_transaction') return { ...common, portfolio_id: uuid(id), type: 'BUY' }
  if (table === 'account_transaction') {
    return { ...common, account_id: uuid(id), type: 'DEPOSIT', amount: '1' }
  }
  return common
}

const nobody: Row = { connection: '0', id: 0, day: '', currency: '' }
const touchedBy = (rows: Row[]) => rows.map(({ connection }) => connection)
const uuid = (id: number) => `00000000-0000-4000-8000-${String(id).padStart(12, '0')}`
