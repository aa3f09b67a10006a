import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { OperatorError } from '../../operator-error.ts'
import { hasState, SqlState } from '../../postgres/failures.ts'
import { HOUR_PATTERN } from '../../schemas/formats.ts'
import { SHOWN_PROBLEMS } from '../errors.ts'
import { pluralize } from '../output.ts'
import type { Problem } from './problems.ts'
import { type Column, type RowType, TIME_ABSENT } from './row-types.ts'
import { hour } from './rules.ts'

export interface RowCounts {
  inserted: number
  updated: number
  unchanged: number
  /** Rows of the connection that a replacement removes. */
  removed: number
}

/** Inclusive range of effective dates, YYYY-MM-DD, whose rows the input replaces. */
export interface Replacement {
  from?: string | undefined
  to?: string | undefined
  /** Accepts the removal of more than half of the rows in the range. */
  yes?: boolean | undefined
}

/**
 * Begins the transaction of a load. The planner must find each row by its index, whatever the statistics. The memory is
 * for the hash table of NOT IN: without it, a replacement compares each row with each other.
 */
export const beginLoad = (replace: Replacement | undefined) => `
  begin isolation level read committed;
  set local statement_timeout = 0;
  set local work_mem = '${replace ? '1GB' : '64MB'}';
  set local jit = off;
  set local enable_seqscan = off;
  set local enable_bitmapscan = off;
  set local enable_sort = off`

/** Where rows come from: files, which COPY writes into a temporary table, or a line of JSON, which is one parameter. */
type RowSource = 'file' | 'json'

/** @param isPresent true if the list has the row already, as `t` */
function newValue({ name, defaultsToNow }: Column, isPresent: boolean): string {
  if (!defaultsToNow) return `i.${name}`
  const known = isPresent ? `t.${name}` : 'null'
  return `case when i.${name} = '${TIME_ABSENT}' then coalesce(${known}, now()) else i.${name} end`
}

/** 1.0 equals 1.00, but has another scale. */
function isDistinct(old: string, value: string, sqlType: string): string {
  const isDistinctValue = `${old} is distinct from ${value}`
  if (sqlType !== 'numeric') return isDistinctValue
  return `${isDistinctValue} or scale(${old}) is distinct from scale(${value})`
}

const isOddHour = (value: string) => `${value} !~ '${HOUR_PATTERN}'`

/** 0 for 13 of 25 rows of files, 1 for those between them. */
const TURN = 'i.line % 25 % 2'

/**
 * Orders rows of files for an insertion. They have the order of the list, or its reverse: first 13 of 25, because PostgreSQL
 * then leaves each block of its index half full, then the others between them. docs/decisions/experiments.md has the figures.
 */
function interleaved(rows: string): string {
  return `(
    select i.* from ${rows} where ${TURN} = 0
    union all select i.* from ${rows} where ${TURN} = 1) i`
}

/** Ordinals of interleaved rows, in the order of their insertion; unique for 2^29 rows. */
const INTERLEAVED_ORDINAL = `(${TURN} << 29 | i.line)`

/**
 * Compiles the statements of a type. Their $1 is the id of the connection. With JSON, $2 has the rows. The data version after
 * the statement follows, or the range. `from` is the item `i` of FROM, with the columns and `line`.
 */
export function mergeSql(type: RowType, from: string, source: RowSource) {
  const { table, key, columns, hasChangeNumbers } = type
  /** Number of the first parameter after the rows. */
  const next = source === 'json' ? 3 : 2
  const names = columns.map(({ name }) => name)
  const all = hasChangeNumbers ? [...names, 'change_number'] : names
  // The change number of a row: the version after the statement, and an ordinal (migration 0002).
  const insert = (ordinal: string, rows: string, { isPresent = false } = {}) => {
    const values = columns.map((column) => newValue(column, isPresent))
    if (hasChangeNumbers) values.push(`$${next}::bigint << 31 | ${ordinal}`)
    return `
      insert into ${table} (connection_id, ${all})
      select ${['$1::bigint', ...values]} ${rows}`
  }
  const insertNew =
    source === 'json'
      ? insert('i.line', `from ${from}`)
      : insert(INTERLEAVED_ORDINAL, `from ${interleaved(from)}`)
  // By the primary key, because only it has the order. With old statistics, PostgreSQL would compare all pairs of rows.
  const presentRows = `
    from ${from} cross join lateral (
      select * from ${table} t where t.connection_id = $1 and t.${key.column} >= i.${key.column}
      order by t.${key.column} limit 1) t
    where t.${key.column} = i.${key.column}`
  const differences = columns.map((column) =>
    isDistinct(`t.${column.name}`, newValue(column, true), column.sqlType),
  )
  const isChanged = `(${differences.join(' or ')})`
  const hours = type.hours.map(({ path, index }) => `('${path}', i.${names[index]})`)
  const hasOddHour = type.hours.map(({ index }) => isOddHour(`i.${names[index]}`))
  // NOT IN is a lookup in a hash table. NOT EXISTS can be a loop over both tables, with old statistics.
  const isOther = `t.${key.column} not in (select i.${key.column} from ${from})`
  const range = `and t.effective_day between $${next}::date and $${next + 1}::date`
  const inRange = `from ${table} t where t.connection_id = $1::bigint ${hasChangeNumbers ? range : ''}`
  // The other rows are few in a refresh. PostgreSQL logs each row of ON CONFLICT once more.
  const isOtherRow =
    source === 'json'
      ? `where i.${key.column} not in (select i.${key.column} ${presentRows})`
      : 'on conflict do nothing'
  return {
    // PostgreSQL looks up no row if the connection has none.
    compare: `
      select count(*)::integer as present, (count(*) filter (where ${isChanged}))::integer as updated
      ${presentRows} and exists (select from ${table} where connection_id = $1)`,
    // Citus joins a table with the input only in the form of presentRows, and must not merge it into the query below.
    oddHours: `
      with unchanged as materialized (
        select i.${key.column} as id ${presentRows} and not ${isChanged} and (${hasOddHour.join(' or ')}))
      select i.line::integer as row, h.field, h.hour, (count(*) over ())::integer as total
      from ${from} cross join lateral (values ${hours.join()}) h (field, hour)
      where ${isOddHour('h.hour')} and i.${key.column} not in (select id from unchanged)
      order by row, h.field limit ${SHOWN_PROBLEMS}`,
    insert: insertNew,
    insertOthers: `${insertNew} ${isOtherRow}`,
    // Citus supports neither MERGE nor UPDATE from a temporary table.
    update: `
      ${insert('i.line', `${presentRows} and ${isChanged}`, { isPresent: true })}
      on conflict (connection_id, ${key.column}) do update
      set ${all.map((column) => `${column} = excluded.${column}`)}`,
    countRemovals: `
      select count(*)::integer as present, (count(*) filter (where ${isOther}))::integer as removed ${inRange}`,
    removeOthers: `delete ${inRange} and ${isOther}`,
  }
}

type Run = <Row extends object>(query: pg.QueryConfig) => Promise<Row[]>

/** Only the pipeline of pg sends statements without waiting. */
export function runInOrder(client: pg.ClientBase & { pipeline?: boolean }): Run {
  let last: Promise<unknown> = Promise.resolve()
  return async <Row extends object>(query: pg.QueryConfig): Promise<Row[]> => {
    const run = () => client.query<Row & pg.QueryResultRow>(query)
    const result = client.pipeline ? run() : last.then(run)
    last = result.catch(() => {})
    return (await result).rows
  }
}

/** Waits for all statements: none may be sent after a rollback. @throws the first error; the others follow from it */
export async function settled<T extends readonly unknown[] | []>(statements: T) {
  await Promise.allSettled(statements)
  return await Promise.all(statements)
}

/** $1 of the statement is the id of the connection, and the values follow. */
export type Query = <Row extends object>(text: string, values?: string[]) => Promise<Row[]>

/** Rows of a list, with the statements of mergeSql() and the values of their parameters. */
export interface ListRows {
  type: RowType
  count: number
  sql: ReturnType<typeof mergeSql>
  values: string[]
  /** True if a row has an hour that only a stored row may have. */
  hasOddHour: boolean
}

export class MergeRejected extends OperatorError {
  readonly problems: Problem[]
  /** Number of all problems, including those not in `problems`. */
  readonly total: number

  constructor(problems: Problem[], total = problems.length) {
    super(problems[0]?.detail)
    this.problems = problems
    this.total = total
  }
}

/**
 * Also takes the lock of the triggers: loads into one connection wait for each other from here on. Citus accepts
 * neither clock_timestamp() nor the data version in RETURNING.
 */
const REFRESHED = 'update connection set refreshed_at = statement_timestamp() where id = $1'

const DATA_VERSION = `
  select data_version as version,
    data_version || '.' || (extract(epoch from changed_at) * 1000000)::bigint as "dataVersion"
  from connection where id = $1`

const NONE = { present: 0, updated: 0, removed: 0 }

/** Values of statements with a range: those of the rows, and the range if the list has days. */
function valuesInRange({ type, values }: ListRows, replace: Replacement | undefined): string[] {
  if (!type.hasChangeNumbers) return values
  return [...values, replace?.from ?? '-infinity', replace?.to ?? 'infinity']
}

/** Counts what an input would change in a list of a connection. */
async function compare(query: Query, list: ListRows, replace: Replacement | undefined) {
  const { count, sql, values } = list
  const presentRows = query<typeof NONE>(sql.compare, values)
  const otherRows = replace
    ? query<typeof NONE>(sql.countRemovals, valuesInRange(list, replace))
    : []
  const [[found = NONE], [removal = NONE]] = await settled([presentRows, otherRows])
  const { present, updated } = found
  const counts = {
    inserted: count - present,
    updated,
    unchanged: present - updated,
    removed: removal.removed,
  }
  return { list, present, inRange: removal.present, counts }
}

/** A stored row with such an hour passes if it comes unchanged. @throws MergeRejected for the others */
async function rejectOddHours(query: Query, { type, sql, values }: ListRows) {
  const found = await query<{ row: number; field: string; hour: string; total: number }>(
    sql.oddHours,
    values,
  )
  if (found.length === 0) return
  const problems = found.map(({ row, field, hour: value }) => {
    return { list: type.list, row, field, detail: hour(value) ?? '' }
  })
  throw new MergeRejected(problems, found[0]?.total)
}

/**
 * Writes rows of lists into a connection, in the caller's transaction. A pipeline needs two round trips.
 * @returns undefined if the connection does not exist; `written`: resolves to the data version after all statements
 * @throws MergeRejected if a replacement without `yes` would remove more than half of the rows in its range, and for
 *   an hour that sorts wrongly in a row that is new or changes
 */
export async function merge(
  query: Query,
  lists: ListRows[],
  { replace, dryRun }: { replace?: Replacement | undefined; dryRun?: boolean },
): Promise<{ counts: RowCounts[]; written: Promise<string> } | undefined> {
  const { yes = false } = replace ?? {}
  // A pipeline sends all of them before the first result.
  const marked = query(REFRESHED)
  const connections = query<{ version: string; dataVersion: string }>(DATA_VERSION)
  const comparisons = lists.map((list) => compare(query, list, replace))
  const hours = lists
    .filter(({ hasOddHour }) => hasOddHour)
    .map((list) => rejectOddHours(query, list))
  await settled([marked, connections, ...comparisons, ...hours])
  const [connection] = await connections
  const compared = await Promise.all(comparisons)
  if (connection === undefined) return undefined
  const counts = compared.map((list) => list.counts)
  if (dryRun) return { counts, written: Promise.resolve(connection.dataVersion) }
  // The input may be truncated.
  for (const { list, inRange, counts } of compared)
    if (!yes && 2 * counts.removed > inRange) {
      const detail =
        `The input lacks ${counts.removed} of the ${pluralize(inRange, 'row')} that it replaces; nothing was ` +
        'imported. --yes removes them, or "yes": true in a refresh.'
      throw new MergeRejected([{ list: list.type.list, detail }])
    }
  let version = BigInt(connection.version)
  const writes: Promise<unknown>[] = []
  const write = (text: string, values: string[]) => {
    version += 1n
    writes.push(query(text, values))
  }
  for (const { list, present, counts } of compared) {
    const { type, sql, values } = list
    const numbered = () => (type.hasChangeNumbers ? [...values, String(version + 1n)] : values)
    if (counts.inserted > 0) write(present > 0 ? sql.insertOthers : sql.insert, numbered())
    if (counts.updated > 0) write(sql.update, numbered())
    if (counts.removed > 0) write(sql.removeOthers, valuesInRange(list, replace))
  }
  const newest = writes.length > 0 ? query<typeof connection>(DATA_VERSION) : [connection]
  const written = settled([settled(writes), newest]).then(([, [after]]) => after?.dataVersion ?? '')
  return { counts, written }
}

const ATTEMPTS = 20
const PAUSE_MS = 50

/** Waits before the next attempt after a deadlock. @returns false after another error, or too many attempts */
export async function mayRepeat(error: unknown, attempt: number): Promise<boolean> {
  if (!hasState(error, SqlState.conflict) || attempt >= ATTEMPTS) return false
  await sleep(Math.random() * attempt * PAUSE_MS)
  return true
}
