import { type Kysely, type RawBuilder, sql } from 'kysely'
import { firstOfMonth } from '../postgres/statements.ts'
import type { Tables } from '../postgres/tables.ts'
import { pagedLists } from '../schemas/lists.ts'
import { compareSchema } from './catalog.ts'
import { withoutTimeout } from './deletion.ts'
import { showProgress } from './output.ts'

interface Difference {
  connectionId: string
  table: string
  /** A month as YYYY-MM; null for all rows of the connection. */
  period: string | null
  /** Stored row count. */
  booked: number
  counted: number
}

/** Wrong change numbers: the change feed would skip these rows, or return them too early. */
interface WrongNumbers {
  connectionId: string
  table: string
  problem: 'of no version' | 'doubled' | 'older than removal'
  rows: number
}

/**
 * Counts all rows and compares them with the row counts of the triggers, per connection and month. Also compares
 * their change numbers, and the schema with the one that the migrations make. It uses one snapshot, so other sessions
 * may write meanwhile.
 */
export async function verifyRowCounts(db: Kysely<Tables>) {
  let done = 0
  using _progress = showProgress(() => {
    return { step: 'Verifying', done: `${done} of 6 comparisons`, share: done / 6 }
  })
  const snapshot = db.transaction().setIsolationLevel('repeatable read').setAccessMode('read only')
  return await snapshot.execute(async (transaction) => {
    const find = async <Row>(query: RawBuilder<Row>) => {
      const { rows } = await query.execute(transaction)
      done += 1
      return rows
    }
    await sql`set local statement_timeout = 0; set local work_mem = '64MB'`.execute(transaction)
    const schema = await compareSchema(transaction)
    const differences: Difference[] = []
    const numbers: WrongNumbers[] = []
    for (const { table, idColumn } of pagedLists) {
      const total = sql`select id, null::date, ${sql.ref(`${table}s`)}, 0 from connection`
      const months = sql`
        select connection_id, first_day, row_count, 0 from ${sql.table(`${table}_month`)}`
      numbers.push(...(await find(wrongNumbers(table, idColumn))))
      differences.push(...(await find(wrongCounts(table, total, sql`null::date`))))
      differences.push(...(await find(wrongCounts(table, months, MONTH))))
    }
    const { rows } = await sql<{ connections: number; rows: number }>`
      select count(*)::float8 as connections,
        coalesce(sum(portfolio_transactions + account_transactions), 0)::float8 as rows
      from connection`.execute(transaction)
    return { connections: 0, rows: 0, ...rows[0], differences, numbers, schema }
  })
}

function wrongNumbers(table: string, id: string): RawBuilder<WrongNumbers> {
  const [rows, removals, key] = [sql.table(table), sql.table(`${table}_removal`), sql.ref(id)]
  const numbers = sql`(
    select connection_id, change_number from ${rows}
    union all select connection_id, change_number from ${removals}) n`
  return sql`
    select connection_id as "connectionId", ${sql.lit(table)} as "table", problem,
      sum(found)::float8 as rows
    from (
      select n.connection_id, 'of no version' as problem, 1 as found
        from ${numbers} join connection c on c.id = n.connection_id
        where change_number >> 31 not between 1 and data_version
      union all
      select connection_id, 'doubled', count(*) from ${numbers}
        group by connection_id, change_number having count(*) > 1
      union all
      select t.connection_id, 'older than removal', 1 from ${rows} t join ${removals} r
        on r.connection_id = t.connection_id and r.${key} = t.${key}
        where r.change_number > t.change_number) wrong
    group by connection_id, problem order by connection_id, problem`
}

const MONTH = firstOfMonth(sql<string>`effective_day`)

/** @param booked query of the stored counts @param month month of a row, or null */
function wrongCounts(table: string, booked: RawBuilder<unknown>, month: RawBuilder<unknown>) {
  return sql<Difference>`
    select connection_id as "connectionId", ${sql.lit(table)} as "table",
      to_char(first_day, 'YYYY-MM') as period, sum(booked)::float8 as booked,
      sum(counted)::float8 as counted
    from (
      ${booked}
      union all
      select connection_id, ${month}, 0, count(*) from ${sql.table(table)} group by 1, 2
    ) n (connection_id, first_day, booked, counted)
    group by connection_id, first_day having sum(booked) <> sum(counted)
    order by connection_id, first_day`
}

/** Counts the rows of a connection again. A writer that has not committed adds its rows afterwards. */
export async function repairRowCounts(db: Kysely<Tables>, id: string): Promise<void> {
  await withoutTimeout(db, async (transaction) => {
    await sql`select from connection where id = ${id} for update`.execute(transaction)
    for (const { table } of pagedLists) {
      const rows = sql`from ${sql.table(table)} where connection_id = ${id}`
      const counts = sql.table(`${table}_month`)
      await sql`delete from ${counts} where connection_id = ${id}`.execute(transaction)
      await sql`insert into ${counts} select ${id}::bigint, ${MONTH}, count(*) ${rows} group by 2`.execute(
        transaction,
      )
      await sql`
        update connection set ${sql.ref(`${table}s`)} = (select count(*) ${rows}), data_version = data_version + 1
        where id = ${id}`.execute(transaction)
    }
  })
}
