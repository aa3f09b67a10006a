import type { ListName } from './copy.ts'
import { COLUMNS, type Column } from './rows.ts'
import type { StoreNames } from './sqlite-schema.ts'

/**
 * Comment of each table and view of a store. It tells them from those of the app. The number is that of the schema.
 * The Python client has the same one.
 */
export const MARK = 'copy of the Investment Data Query Service, schema 1'

/** Returns the name of a column: operationDateDay is operation_date_day, because PostgreSQL folds names. */
const columnName = (name: string) =>
  name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

function expressionOf({ path, name, kind }: Column): string {
  const steps = path.split('.').join(',')
  const text = `(row #>> '{${steps}}')`
  if (kind === 'decimal') return `${text}::numeric`
  if (kind === 'boolean') return `${text}::boolean`
  // Hours and identifiers stay texts, because institutions may have other forms.
  return name.endsWith('Day') ? `${text}::date` : text
}

function viewOf(names: StoreNames, list: ListName): string {
  const fields = COLUMNS[list].map((column) => {
    return `${expressionOf(column)} as ${columnName(column.name)}`
  })
  return `create view ${names.lists[list]} as
    select c.connection, r.id, r.row, ${fields.join(', ')}
    from ${names.copy} c join ${names.row} r on r.copy_id = c.id
    where c.list = '${list}' and c.copy = 'current'`
}

/** Returns the statements that make the tables and views. The Python client has the same ones. */
export function postgresSchema(names: StoreNames): string[] {
  const statements = [
    `create table ${names.copy} (
    id bigint generated always as identity primary key,
    connection text not null,
    list text not null,
    copy text not null,
    cursor text not null,
    version text,
    total_items bigint,
    refreshed_at timestamptz,
    unique (connection, list, copy)
  )`,
    // The order of the identifiers is that of their bytes, so that it does not depend on the database.
    `create table ${names.row} (
    copy_id bigint not null references ${names.copy} (id),
    id text collate "C" not null,
    row jsonb not null,
    primary key (copy_id, id)
  )`,
    // The number has the order, because a clock may step back.
    `create table ${names.history} (
    number bigint generated always as identity primary key,
    connection text not null,
    list text not null,
    id text not null,
    before jsonb,
    after jsonb,
    seen_at timestamptz not null,
    cursor text not null
  )`,
    `create index on ${names.history} (connection, list, id)`,
    ...(Object.keys(COLUMNS) as ListName[]).map((list) => viewOf(names, list)),
    `create view ${names.changes} as
    select h.number, h.connection, h.list, h.id,
      case when before is null then 'inserted' when after is null then 'removed' else 'updated' end as change,
      f.field, before ->> f.field as before, after ->> f.field as after, h.seen_at, h.cursor
    from ${names.history} h cross join lateral (
      select jsonb_object_keys(coalesce(before, '{}')) as field
      union select jsonb_object_keys(coalesce(after, '{}'))
    ) f
    where before ->> f.field is distinct from after ->> f.field`,
  ]
  const tables = [names.copy, names.row, names.history]
  const views = [...Object.values(names.lists), names.changes]
  const marks = [
    ...tables.map((name) => `comment on table ${name} is '${MARK}'`),
    ...views.map((name) => `comment on view ${name} is '${MARK}'`),
  ]
  return [...statements, ...marks, withRightsOfReader(views)]
}

/**
 * Returns a statement that lets views show the rows that their reader may see, and not those of their owner: row-level security of
 * the tables then holds for the views. PostgreSQL has the option since version 15.
 */
function withRightsOfReader(views: string[]): string {
  const changes = views.map((name) => `alter view ${name} set (security_invoker = true);`)
  return `do $$ begin
    if current_setting('server_version_num')::int >= 150000 then
      ${changes.join('\n      ')}
    end if;
  end $$`
}
