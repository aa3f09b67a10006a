import { COLUMNS, type Column } from './rows.ts'

function viewOf(list: string, columns: Column[]): string {
  const fields = columns.map(({ path, name }) => `json_extract(row, '$.${path}') as ${name}`)
  return `create view ${list} as select connection, r.id, row, ${fields.join(', ')}
    from investment_copy c join investment_row r on copy_id = c.id
    where list = '${list}' and copy = 'current'`
}

/** The fields of one side of a change that differ on the other side. */
const changesOf = (side: string, condition: string) => `
  select number, connection, list, h.id,
    case when before is null then 'inserted' when after is null then 'removed' else 'updated' end as change,
    key as field, json_extract(before, fullkey) as before, json_extract(after, fullkey) as after,
    seen_at, cursor
  from investment_history h, json_each(${side})
  where json_extract(before, fullkey) is not json_extract(after, fullkey) ${condition}`

/**
 * Makes the tables and views, also from those of release 1.1.0. The Python client has the same ones, so
 * both can continue a copy.
 */
export const SCHEMA = [
  `create table if not exists investment_copy (
    id integer primary key,
    connection text not null,
    list text not null,
    copy text not null,
    cursor text not null,
    unique (connection, list, copy)
  )`,
  `create table if not exists investment_row (
    copy_id integer not null references investment_copy (id),
    id text not null,
    row text not null,
    primary key (copy_id, id)
  ) without rowid`,
  // The columns of a newer release are at the end, and may be null, for a program that goes back.
  ...['version text', 'total_items integer', 'refreshed_at text'].map(
    (column) => `alter table investment_copy add column ${column}`,
  ),
  // The number has the order, because a clock may step back.
  `create table investment_history (
    number integer primary key autoincrement,
    connection text not null,
    list text not null,
    id text not null,
    before text,
    after text,
    seen_at text not null,
    cursor text not null
  )`,
  ...Object.entries(COLUMNS).flatMap(([list, columns]) => [
    `drop view if exists ${list}`,
    viewOf(list, columns),
  ]),
  `create view investment_changes as ${changesOf('before', '')} union all ${changesOf(
    'after',
    'and (before is null or json_type(before, fullkey) is null)',
  )}`,
]
