import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { OperatorError } from '../../operator-error.ts'
import { hasState, SqlState } from '../../postgres/failures.ts'
import { pluralize } from '../output.ts'
import { COMPLETION_ABSENT, type List, type RowType } from './row-types.ts'

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

/**
 * Compiles the statements of a type. Their $1 is the id of the connection. The `parameters` of the rows follow, then
 * the data version after the statement, or the range. `from` is the item `i` of FROM, with the columns and `line`.
 */
export function mergeSql(
  { table, key, columns, hasChangeNumbers }: RowType,
  from: string,
  parameters: number,
) {
  const next = parameters + 2
  const names = columns.map(({ name }) => name)
  const all = hasChangeNumbers ? [...names, 'change_number'] : names
  // An order without `completedAt` is completed now, unless it has a time of completion already.
  const newValue = (name: string, known: string) =>
    name === 'completed_at'
      ? `case when i.completed_at = '${COMPLETION_ABSENT}' then coalesce(${known}, now()) else i.completed_at end`
      : `i.${name}`
  // The change number of a row: the version after the statement, and an ordinal (migration 0002).
  const insert = (ordinal: string, rows: string, known = 'null') => {
    const values = names.map((name) => newValue(name, known))
    const number = hasChangeNumbers ? [`$${next}::bigint << 31 | ${ordinal}`] : []
    return `
      insert into ${table} (connection_id, ${all})
      select ${['$1::bigint', ...values, ...number]} ${rows}`
  }
  // Rows of files have the order of the list, or its reverse: first 13 of 25, because PostgreSQL then leaves each
  // block of its index half full, then the others between them.
  const part = (is: number) => `select i.* from ${from} where i.line % 25 % 2 = ${is}`
  const insertNew =
    parameters > 0
      ? insert('i.line', `from ${from}`)
      : insert('(i.line % 25 % 2 << 29 | i.line)', `from (${part(0)} union all ${part(1)}) i`)
  // By the primary key, because only it has the order. With old statistics, PostgreSQL would compare all pairs of rows.
  const presentRows = `
    from ${from} cross join lateral (
      select * from ${table} t where t.connection_id = $1 and t.${key.column} >= i.${key.column}
      order by t.${key.column} limit 1) t
    where t.${key.column} = i.${key.column}`
  // 1.0 equals 1.00, but has another scale.
  const differs = columns.flatMap(({ name, sqlType }) => {
    const [old, value] = [`t.${name}`, newValue(name, 't.completed_at')]
    const scales = sqlType === 'numeric' ? [`scale(${old}) is distinct from scale(${value})`] : []
    return [`${old} is distinct from ${value}`, ...scales]
  })
  const isChanged = `(${differs.join(' or ')})`
  // NOT IN is a lookup in a hash table. NOT EXISTS can be a loop over both tables, with old statistics.
  const isOther = `t.${key.column} not in (select i.${key.column} from ${from})`
  const range = `and t.effective_day between $${next}::date and $${next + 1}::date`
  const inRange = `from ${table} t where t.connection_id = $1::bigint ${hasChangeNumbers ? range : ''}`
  return {
    // PostgreSQL looks up no row if the connection has none.
    compare: `
      select count(*)::integer as present, (count(*) filter (where ${isChanged}))::integer as updated
      ${presentRows} and exists (select from ${table} where connection_id = $1)`,
    insert: insertNew,
    // The other rows are few in a refresh. PostgreSQL logs each row of ON CONFLICT once more.
    insertOthers:
      parameters > 0
        ? `${insertNew} where i.${key.column} not in (select i.${key.column} ${presentRows})`
        : `${insertNew} on conflict do nothing`,
    // Citus supports neither MERGE nor UPDATE from a temporary table.
    update: `
      ${insert('i.line', `${presentRows} and ${isChanged}`, 't.completed_at')}
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
}

export class MergeRejected extends OperatorError {
  readonly place: { list?: List; field?: string }

  constructor(message: string, place: MergeRejected['place']) {
    super(message)
    this.place = place
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

/**
 * Writes rows of lists into a connection, in the caller's transaction. A pipeline needs two round trips.
 * @returns undefined if the connection does not exist; `written`: resolves to the data version after all statements
 * @throws MergeRejected if a replacement without `yes` would remove more than half of the rows in its range
 */
export async function merge(
  query: Query,
  lists: ListRows[],
  { replace, dryRun }: { replace?: Replacement | undefined; dryRun?: boolean },
): Promise<{ counts: RowCounts[]; written: Promise<string> } | undefined> {
  const { from = '-infinity', to = 'infinity', yes = false } = replace ?? {}
  const inRange = ({ type, values }: ListRows) =>
    type.hasChangeNumbers ? [...values, from, to] : values
  const [, [connection], compared] = await settled([
    query(REFRESHED),
    query<{ version: string; dataVersion: string }>(DATA_VERSION),
    settled(
      lists.map(async (list) => {
        const { count, sql, values } = list
        const [[found = NONE], [removal = NONE]] = await settled([
          query<typeof NONE>(sql.compare, values),
          replace ? query<typeof NONE>(sql.countRemovals, inRange(list)) : [],
        ])
        const { present, updated } = found
        const unchanged = present - updated
        const counts = { inserted: count - present, updated, unchanged, removed: removal.removed }
        return { list, present, inRange: removal.present, counts }
      }),
    ),
  ])
  if (connection === undefined) return undefined
  const counts = compared.map((list) => list.counts)
  if (dryRun) return { counts, written: Promise.resolve(connection.dataVersion) }
  // The input may be truncated.
  for (const { list, inRange, counts } of compared)
    if (!yes && 2 * counts.removed > inRange)
      throw new MergeRejected(
        `The input lacks ${counts.removed} of the ${pluralize(inRange, 'row')} that it replaces; nothing was ` +
          'imported. --yes removes them, or "yes": true in a refresh.',
        { list: list.type.list },
      )
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
    if (counts.removed > 0) write(sql.removeOthers, inRange(list))
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
