import { createHash } from 'node:crypto'
import type pg from 'pg'
import { tableNames } from './statements.ts'

/** Version of a connection, and a digest of all its rows. */
export interface Contents {
  version: string
  digest: string
}

/** Contents of every connection, by id. */
export async function readContents(client: pg.ClientBase): Promise<Map<string, Contents>> {
  const rows = tableNames.map(
    (table) =>
      `(select array_agg(t::text order by t::text) from ${table} t where connection_id = c.id)`,
  )
  const found = await client.query<{ id: string; version: string; rows: string }>(`
    select id, data_version || ' at ' || extract(epoch from changed_at) as version,
      json_build_array(${rows})::text as rows
    from connection c`)
  const digest = (text: string) => createHash('sha256').update(text).digest('base64')
  return new Map(found.rows.map(({ id, version, rows }) => [id, { version, digest: digest(rows) }]))
}

/** Row counts that differ from a recount. */
export async function wrongEntries(client: pg.ClientBase): Promise<unknown[]> {
  const queries = ['portfolio_transaction', 'account_transaction'].flatMap((table) => [
    `select '${table}s' as table_name, c.id, null as day, c.${table}s as stored, count(t.*) as counted
      from connection c left join ${table} t on t.connection_id = c.id
      group by c.id having count(t.*) <> c.${table}s`,
    // Instances of release 1.0.0 read this view.
    `select '${table}_day', connection_id, effective_day, d.row_count, n.counted
      from ${table}_day d
      full join (select connection_id, effective_day, count(*) as counted from ${table} group by 1, 2) n
        using (connection_id, effective_day)
      where d.row_count is distinct from n.counted`,
    `select '${table}_month', connection_id, first_day, m.row_count, n.counted
      from ${table}_month m
      full join (select connection_id, date_trunc('month', effective_day::timestamp)::date as first_day,
          count(*) as counted
        from ${table} group by 1, 2) n using (connection_id, first_day)
      where m.row_count is distinct from n.counted`,
  ])
  return (await client.query(queries.join(' union all '))).rows
}
