import type { ListName } from './copy.ts'
import { COLUMNS, type Column } from './rows.ts'

/** Names of the tables and views of a store. */
export interface StoreNames {
  copy: string
  row: string
  history: string
  /** The view of each list. */
  lists: Record<ListName, string>
  changes: string
}

/**
 * Returns the names of the tables and views.
 * @throws TypeError if the prefix is not a part of a name
 */
export function namesOf(prefix: string): StoreNames {
  if (typeof prefix !== 'string' || !/^([a-z][a-z0-9_]{0,29})?$/.test(prefix))
    throw new TypeError('prefix must be 1 to 30 of a-z, 0-9 and _, and begin with a letter')
  return {
    copy: `${prefix}investment_copy`,
    row: `${prefix}investment_row`,
    history: `${prefix}investment_history`,
    lists: {
      portfolio_transactions: `${prefix}portfolio_transactions`,
      account_transactions: `${prefix}account_transactions`,
      transfer_orders: `${prefix}transfer_orders`,
    },
    changes: `${prefix}investment_changes`,
  }
}

/** Returns all names: those of the tables, then those of the views. */
export function allNames({ copy, row, history, lists, changes }: StoreNames): string[] {
  return [copy, row, history, ...Object.values(lists), changes]
}

function viewOf(names: StoreNames, list: ListName, columns: Column[]): string {
  const fields = columns.map(({ path, name }) => `json_extract(row, '$.${path}') as ${name}`)
  return `create view ${names.lists[list]} as select connection, r.id, row, ${fields.join(', ')}
    from ${names.copy} c join ${names.row} r on copy_id = c.id
    where list = '${list}' and copy = 'current'`
}

/** The fields of one side of a change that differ on the other side. */
const changesOf = (names: StoreNames, side: string, condition: string) => `
  select number, connection, list, h.id,
    case when before is null then 'inserted' when after is null then 'removed' else 'updated' end as change,
    key as field, json_extract(before, fullkey) as before, json_extract(after, fullkey) as after,
    seen_at, cursor
  from ${names.history} h, json_each(${side})
  where json_extract(before, fullkey) is not json_extract(after, fullkey) ${condition}`

/** Columns of the tables, those of release 1.1.0 first. */
const TABLE_COLUMNS = {
  copy: 'id connection list copy cursor version total_items refreshed_at',
  row: 'copy_id id row',
  history: 'number connection list id before after seen_at cursor',
}
const COPY_OF_1_1_0 = 'id connection list copy cursor'

/** A table or view of the database. */
export interface DatabaseObject {
  name: string
  type: string
  sql: string
  /** Names of the columns of a table, in their order; null for a view. */
  columns: string | null
}

/** True if the tables are those of this release: nothing is left to make. */
export function isCurrent(names: StoreNames, objects: DatabaseObject[]): boolean {
  return objects.some(({ name, columns }) => name === names.copy && columns === TABLE_COLUMNS.copy)
}

/** True if a store has made the table or view. Views of each release have one form. */
export function isOwn(names: StoreNames, { name, type, sql, columns }: DatabaseObject): boolean {
  if (name === names.copy) {
    const isKnown = columns === TABLE_COLUMNS.copy || columns === COPY_OF_1_1_0
    return type === 'table' && isKnown
  }
  if (name === names.row) return type === 'table' && columns === TABLE_COLUMNS.row
  if (name === names.history) return type === 'table' && columns === TABLE_COLUMNS.history
  if (type !== 'view') return false
  const text = sql.replaceAll(/\s+/g, ' ').trim()
  if (name === names.changes) return text.includes(` from ${names.history} h, json_each(before) `)
  const list = Object.entries(names.lists).find(([, view]) => view === name)?.[0]
  const from = `from ${names.copy} c join ${names.row} r on copy_id = c.id`
  const own = `as select connection, r.id, row(, json_extract\\(row, '[$.A-Za-z]+'\\) as [A-Za-z]+)* ${from}`
  return new RegExp(
    `^create view ${name} ${own} where list = '${list}' and copy = 'current'$`,
    'i',
  ).test(text)
}

/**
 * Returns the statements that make the tables and views, also from those of release 1.1.0. The Python client
 * has the same ones, so both can continue a copy.
 */
export function schemaOf(names: StoreNames): string[] {
  return [
    `create table if not exists ${names.copy} (
    id integer primary key,
    connection text not null,
    list text not null,
    copy text not null,
    cursor text not null,
    unique (connection, list, copy)
  )`,
    `create table if not exists ${names.row} (
    copy_id integer not null references ${names.copy} (id),
    id text not null,
    row text not null,
    primary key (copy_id, id)
  ) without rowid`,
    // The columns of a newer release are at the end, and may be null, for a program that goes back.
    ...['version text', 'total_items integer', 'refreshed_at text'].map(
      (column) => `alter table ${names.copy} add column ${column}`,
    ),
    // The number has the order, because a clock may step back.
    `create table ${names.history} (
    number integer primary key autoincrement,
    connection text not null,
    list text not null,
    id text not null,
    before text,
    after text,
    seen_at text not null,
    cursor text not null
  )`,
    ...(Object.keys(COLUMNS) as ListName[]).flatMap((list) => [
      `drop view if exists ${names.lists[list]}`,
      viewOf(names, list, COLUMNS[list]),
    ]),
    `create view ${names.changes} as ${changesOf(names, 'before', '')} union all ${changesOf(
      names,
      'after',
      'and (before is null or json_type(before, fullkey) is null)',
    )}`,
  ]
}
