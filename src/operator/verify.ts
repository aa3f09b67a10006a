import { type Kysely, type RawBuilder, sql } from 'kysely'
import { firstOfMonth } from '../postgres/statements.ts'
import type { Tables } from '../postgres/tables.ts'
import { pagedLists } from '../schemas/lists.ts'
import { compareSchema, staleCollation } from './catalog.ts'
import { withoutTimeouts } from './database.ts'
import { withoutTimeout } from './deletion.ts'
import { showProgress } from './output.ts'

/** Checks row counts, change numbers, the schema and its collation in one snapshot, so that other sessions may write meanwhile. */
export async function verifyRowCounts(db: Kysely<Tables>) {
  let done = 0
  using _progress = showProgress(() => {
    return { step: 'Verifying', done: `${done} of 6 comparisons`, share: done / 6 }
  })
  const snapshot = db.transaction().setIsolationLevel('repeatable read').setAccessMode('read only')
  return await snapshot.execute(async (transaction) => {
    const find = async <Row>(queries: RawBuilder<Row>[]) => {
      const found: Row[][] = []
      for (const query of queries) {
        found.push((await query.execute(transaction)).rows)
        done += 1
      }
      return found.flat()
    }
    await sql.raw(withoutTimeouts('transaction')).execute(transaction)
    await sql`set local work_mem = '64MB'`.execute(transaction)
    const schema = await compareSchema(transaction)
    const collation = await staleCollation(transaction)
    const numbers = await find(pagedLists.map(wrongNumbers))
    const differences = await find(pagedLists.flatMap(wrongCounts))
    const { rows } = await sql<{ connections: number; rows: number }>`
      select count(*)::float8 as connections,
        coalesce(sum(portfolio_transactions + account_transactions), 0)::float8 as rows
      from connection`.execute(transaction)
    return { connections: 0, rows: 0, ...rows[0], differences, numbers, schema, collation }
  })
}

type PagedList = (typeof pagedLists)[number]

/** Finds wrong change numbers: clients that read changes would miss these rows, or get them too early. */
function wrongNumbers({ table, idColumn: id }: PagedList) {
  const rows = sql.table(table)
  const removals = sql.table(`${table}_removal`)
  const key = sql.ref(id)
  const numbers = sql`(
    select connection_id, change_number from ${rows}
    union all select connection_id, change_number from ${removals}) n`
  return sql<object>`
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

/** Finds connections, and then months of them, with another number of rows than the stored one. */
function wrongCounts({ table }: PagedList) {
  const compare = (booked: RawBuilder<unknown>, month: RawBuilder<unknown>) =>
    sql<{ connectionId: string; period: string | null }>`
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
  const months = sql.table(`${table}_month`)
  return [
    compare(
      sql`select id, null::date, ${sql.ref(`${table}s`)}, 0 from connection`,
      sql`null::date`,
    ),
    compare(sql`select connection_id, first_day, row_count, 0 from ${months}`, MONTH),
  ]
}

/** Counts the rows of a connection again. A writer that has not committed adds its rows afterwards. */
export async function repairRowCounts(db: Kysely<Tables>, id: string): Promise<void> {
  await withoutTimeout(db, async (transaction) => {
    // Later than the last version, also behind a clock that stepped back.
    const { rows: locked } = await sql<{ at: string }>`
      select greatest(clock_timestamp(), changed_at + interval '1 millisecond' * random())::text as at
      from connection where id = ${id} for update`.execute(transaction)
    for (const { table } of pagedLists) {
      const rows = sql`from ${sql.table(table)} where connection_id = ${id}`
      const counts = sql.table(`${table}_month`)
      await sql`delete from ${counts} where connection_id = ${id}`.execute(transaction)
      await sql`
        insert into ${counts} select ${id}::bigint, ${MONTH}, count(*) ${rows} group by 2`.execute(
        transaction,
      )
      await sql`
        update connection set ${sql.ref(`${table}s`)} = (select count(*) ${rows}), data_version = data_version + 1,
          changed_at = ${locked[0]?.at}::timestamptz
        where id = ${id}`.execute(transaction)
    }
  })
}
