import { type RawBuilder, sql } from 'kysely'
import { compile, parameter } from '../../postgres/statements.ts'
import { HOUR_PATTERN } from '../../schemas/formats.ts'
import { SHOWN_PROBLEMS } from '../errors.ts'
import { type Column, type RowType, TIME_ABSENT } from './row-types.ts'

/** Parameters of the statements of a load, with their types in TypeScript and in PostgreSQL. */
export const parameters = {
  connectionId: parameter<string>('connectionId', 'bigint'),
  /** Rows of a line: a JSON array with an array of the columns for each row. */
  rows: parameter<string>('rows', 'jsonb'),
  /** Data version after the statement. */
  version: parameter<string>('version', 'bigint'),
  /** First day of the replaced rows. */
  from: parameter<string>('from', 'date'),
  /** Last day of the replaced rows. */
  to: parameter<string>('to', 'date'),
}
const { connectionId, version, from, to } = parameters

/** Values of the parameters, besides the connection. A statement takes those that it has. */
export type LoadValues = { [Name in Exclude<keyof typeof parameters, 'connectionId'>]?: string }

/**
 * Begins the transaction of a load. The planner must find each row by its index, whatever the statistics. The memory is
 * for the hash table of NOT IN: without it, a replacement compares each row with each other.
 */
export const beginLoad = (replaces: boolean) => `
  begin isolation level read committed;
  set local statement_timeout = 0;
  set local work_mem = '${replaces ? '1GB' : '64MB'}';
  set local jit = off;
  set local enable_seqscan = off;
  set local enable_bitmapscan = off;
  set local enable_sort = off`

/**
 * Also takes the lock of the triggers: loads into one connection wait for each other from here on. Citus accepts
 * neither clock_timestamp() nor the data version in RETURNING.
 */
export const markRefreshed = compile(
  'load: refreshed',
  'Sets the time of the refresh.',
  sql`update connection set refreshed_at = statement_timestamp() where id = ${connectionId}`,
)

export const readDataVersion = compile(
  'load: version',
  'Reads the data version of the connection.',
  sql`
    select data_version as version,
      data_version || '.' || (extract(epoch from changed_at) * 1000000)::bigint as "dataVersion"
    from connection where id = ${connectionId}`,
)

type Sql = RawBuilder<unknown>

/** Where rows come from: files, which COPY writes into a temporary table, or a line of JSON, which is one parameter. */
type RowSource = 'file' | 'json'

/** A value of the input. */
const given = (column: string): Sql => sql.ref(`i.${column}`)
/** A value of a row that the list has already. */
const stored = (column: string): Sql => sql.ref(`t.${column}`)

/** @param isPresent true if the list has the row already, as `t` */
function newValue({ name, defaultsToNow }: Column, isPresent: boolean): Sql {
  const value = given(name)
  if (!defaultsToNow) return value
  const known = isPresent ? stored(name) : sql`null`
  return sql`case when ${value} = ${sql.lit(TIME_ABSENT)} then coalesce(${known}, now()) else ${value} end`
}

/** 1.0 equals 1.00, but has another scale. */
function isDistinct(column: Column): Sql {
  const old = stored(column.name)
  const value = newValue(column, true)
  const isDistinctValue = sql`${old} is distinct from ${value}`
  if (column.sqlType !== 'numeric') return isDistinctValue
  return sql`${isDistinctValue} or scale(${old}) is distinct from scale(${value})`
}

const isOddHour = (value: Sql): Sql => sql`${value} !~ ${sql.lit(HOUR_PATTERN)}`
const anyOf = (conditions: Sql[]): Sql => sql`(${sql.join(conditions, sql` or `)})`

/** 0 for 13 of 25 rows of files, 1 for those between them. */
const TURN = sql`i.line % 25 % 2`

/**
 * Orders rows of files for an insertion. They have the order of the list, or its reverse: first 13 of 25, because PostgreSQL
 * then leaves each block of its index half full, then the others between them. docs/decisions/experiments.md has the figures.
 */
function interleaved(input: Sql): Sql {
  return sql`(
    select i.* from ${input} where ${TURN} = 0
    union all select i.* from ${input} where ${TURN} = 1) i`
}

const LINE = sql`i.line`
/** Ordinals of interleaved rows, in the order of their insertion; unique for 2^29 rows. */
const INTERLEAVED_LINE = sql`(${TURN} << 29 | i.line)`

/**
 * Compiles the statements of a type.
 * @param input item `i` of FROM, with the columns and `line`
 */
export function mergeStatements(type: RowType, input: Sql, source: RowSource) {
  const { columns, hasChangeNumbers } = type
  const table = sql.table(type.table)
  const id = type.key.column
  const names = columns.map(({ name }) => name)
  const written = hasChangeNumbers ? [...names, 'change_number'] : names
  const hours = type.hours.map(({ path, index }) => ({ path, value: given(names[index] ?? '') }))

  const insert = (ordinal: Sql, rows: Sql, { isPresent = false } = {}): Sql => {
    const values: Sql[] = [connectionId, ...columns.map((column) => newValue(column, isPresent))]
    // The change number of a row: the version after the statement, and an ordinal (migration 0002).
    if (hasChangeNumbers) values.push(sql`${version} << 31 | ${ordinal}`)
    return sql`
      insert into ${table} (connection_id, ${sql.join(written.map((name) => sql.ref(name)))})
      select ${sql.join(values)} ${rows}`
  }
  const insertNew =
    source === 'json'
      ? insert(LINE, sql`from ${input}`)
      : insert(INTERLEAVED_LINE, sql`from ${interleaved(input)}`)
  // By the primary key, because only it has the order. With old statistics, PostgreSQL would compare all pairs of rows.
  const presentRows = sql`
    from ${input} cross join lateral (
      select * from ${table} t where t.connection_id = ${connectionId} and ${stored(id)} >= ${given(id)}
      order by ${stored(id)} limit 1) t
    where ${stored(id)} = ${given(id)}`
  const isChanged = anyOf(columns.map(isDistinct))
  // NOT IN is a lookup in a hash table. NOT EXISTS can be a loop over both tables, with old statistics.
  const isOther = sql`${stored(id)} not in (select ${given(id)} from ${input})`
  const inDays = hasChangeNumbers ? sql`and t.effective_day between ${from} and ${to}` : sql``
  const inRange = sql`from ${table} t where t.connection_id = ${connectionId} ${inDays}`
  // The other rows are few in a refresh. PostgreSQL logs each row of ON CONFLICT once more.
  const isOtherRow =
    source === 'json'
      ? sql`where ${given(id)} not in (select ${given(id)} ${presentRows})`
      : sql`on conflict do nothing`
  const replaced = written.map((name) => sql`${sql.ref(name)} = ${sql.ref(`excluded.${name}`)}`)

  const statement = (title: string, purpose: string, text: Sql) =>
    compile(`load: ${title} ${type.table}`, purpose, text)
  return {
    compare: statement(
      'compare',
      'Counts the rows of the input that the connection has, and those that differ.',
      // PostgreSQL looks up no row if the connection has none.
      sql`
        select count(*)::integer as present, (count(*) filter (where ${isChanged}))::integer as updated
        ${presentRows} and exists (select from ${table} where connection_id = ${connectionId})`,
    ),
    oddHours: statement(
      'hours',
      'Finds hours that sort wrongly, in new and changed rows.',
      // Citus joins a table with the input only in the form of presentRows, and must not merge it into the query below.
      sql`
        with unchanged as materialized (
          select ${given(id)} as id ${presentRows} and not ${isChanged}
            and ${anyOf(hours.map(({ value }) => isOddHour(value)))})
        select i.line::integer as row, h.field, h.hour, (count(*) over ())::integer as total
        from ${input} cross join lateral (
          values ${sql.join(hours.map(({ path, value }) => sql`(${sql.lit(path)}, ${value})`))}) h (field, hour)
        where ${isOddHour(sql`h.hour`)} and ${given(id)} not in (select id from unchanged)
        order by row, h.field limit ${sql.lit(SHOWN_PROBLEMS)}`,
    ),
    insert: statement('insert', 'Inserts all rows.', insertNew),
    insertOthers: statement(
      'insert new rows of',
      'Inserts the rows that the connection does not have.',
      sql`${insertNew} ${isOtherRow}`,
    ),
    update: statement(
      'update',
      'Updates the rows that differ.',
      // Citus supports neither MERGE nor UPDATE from a temporary table.
      sql`
        ${insert(LINE, sql`${presentRows} and ${isChanged}`, { isPresent: true })}
        on conflict (connection_id, ${sql.ref(id)}) do update set ${sql.join(replaced)}`,
    ),
    countRemovals: statement(
      'count other rows of',
      'Counts the rows of the range, and those that the input lacks.',
      sql`
        select count(*)::integer as present,
          (count(*) filter (where ${isOther}))::integer as removed ${inRange}`,
    ),
    removeOthers: statement(
      'delete other rows of',
      'Deletes the rows of the range that the input lacks.',
      sql`delete ${inRange} and ${isOther}`,
    ),
  }
}
