import { type Kysely, type RawBuilder, sql } from 'kysely'
import type { Tables } from '../database/tables.ts'

/** Where the books and the rows disagree. */
export interface Difference {
  connectionId: string
  /** The table whose rows were counted. */
  table: string
  /** Null where it is the connection's count of all its rows. */
  day: string | null
  /** What the books say, and how many rows there are. */
  booked: number
  counted: number
}

export interface Verification {
  connections: number
  rows: number
  differences: Difference[]
}

/**
 * Counts all rows anew and compares them with the books that the triggers keep: per connection, and
 * per connection and day. All of it in one snapshot, so that it can be done while others write.
 */
export async function verifyBooks(db: Kysely<Tables>): Promise<Verification> {
  return await db
    .transaction()
    .setIsolationLevel('repeatable read')
    .setAccessMode('read only')
    .execute(async (snapshot) => {
      await sql`set local statement_timeout = 0; set local work_mem = '64MB'`.execute(snapshot)
      const differences: Difference[] = []
      for (const table of ['portfolio_transaction', 'account_transaction']) {
        for (const query of [totals(table), days(table)]) {
          differences.push(...(await query.execute(snapshot)).rows)
        }
      }
      const size = await books(snapshot)
      return { ...size, differences }
    })
}

function totals(table: string): RawBuilder<Difference> {
  const booked = sql.ref(`c.${table}s`)
  return sql`
    select c.id as "connectionId", ${sql.lit(table)} as "table", null as day,
      ${booked}::float8 as booked, coalesce(n.counted, 0)::float8 as counted
    from connection c
    left join (select connection_id, count(*) as counted from ${sql.table(table)} group by 1) n
      on n.connection_id = c.id
    where ${booked} <> coalesce(n.counted, 0)
    order by c.id`
}

function days(table: string): RawBuilder<Difference> {
  return sql`
    select connection_id as "connectionId", ${sql.lit(table)} as "table",
      to_char(effective_day, 'YYYY-MM-DD') as day,
      coalesce(d.row_count, 0) as booked, coalesce(n.counted, 0)::float8 as counted
    from ${sql.table(`${table}_day`)} d
    full join (
      select connection_id, effective_day, count(*) as counted
      from ${sql.table(table)} group by 1, 2) n using (connection_id, effective_day)
    where coalesce(d.row_count, 0) <> coalesce(n.counted, 0)
    order by connection_id, effective_day`
}

async function books(db: Kysely<Tables>): Promise<{ connections: number; rows: number }> {
  const { rows } = await sql<{ connections: number; rows: number }>`
    select count(*)::float8 as connections,
      coalesce(sum(portfolio_transactions + account_transactions), 0)::float8 as rows
    from connection`.execute(db)
  return rows[0] ?? { connections: 0, rows: 0 }
}
