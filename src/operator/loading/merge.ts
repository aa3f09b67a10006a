import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { OperatorError } from '../../operator-error.ts'
import { hasState, SqlState } from '../../postgres/failures.ts'
import type { CompiledStatement } from '../../postgres/statements.ts'
import { pluralize } from '../output.ts'
import {
  type LoadValues,
  markRefreshed,
  type mergeStatements,
  readDataVersion,
} from './merge-statements.ts'
import type { Problem } from './problems.ts'
import type { RowType } from './row-types.ts'
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

/** Runs a statement for the connection of the load. */
export type Query = <Row extends object>(
  statement: CompiledStatement,
  values: LoadValues,
) => Promise<Row[]>

/** Rows of a list, with their statements, and the value of the rows if it is a parameter. */
export interface ListRows {
  type: RowType
  count: number
  statements: ReturnType<typeof mergeStatements>
  values: LoadValues
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

const NONE = { present: 0, updated: 0, removed: 0 }

/** Days of the rows that a replacement removes; all without one of the two. */
const daysOf = (replace: Replacement | undefined): LoadValues => {
  return { from: replace?.from ?? '-infinity', to: replace?.to ?? 'infinity' }
}

/** Counts what an input would change in a list of a connection. */
async function compare(query: Query, list: ListRows, replace: Replacement | undefined) {
  const { count, statements, values } = list
  const presentRows = query<typeof NONE>(statements.compare, values)
  const otherRows = replace
    ? query<typeof NONE>(statements.countRemovals, { ...values, ...daysOf(replace) })
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
async function rejectOddHours(query: Query, { type, statements, values }: ListRows) {
  const found = await query<{ row: number; field: string; hour: string; total: number }>(
    statements.oddHours,
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
  const marked = query(markRefreshed, {})
  const connections = query<{ version: string; dataVersion: string }>(readDataVersion, {})
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
  for (const { list, present, counts } of compared) {
    const { statements, values } = list
    const write = (statement: CompiledStatement) => {
      version += 1n
      const all = { ...values, ...daysOf(replace), version: String(version) }
      writes.push(query(statement, all))
    }
    if (counts.inserted > 0) write(present > 0 ? statements.insertOthers : statements.insert)
    if (counts.updated > 0) write(statements.update)
    if (counts.removed > 0) write(statements.removeOthers)
  }
  const newest = writes.length > 0 ? query<typeof connection>(readDataVersion, {}) : [connection]
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
