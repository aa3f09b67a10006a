import { setTimeout as sleep } from 'node:timers/promises'
import fastq from 'fastq'
import pg from 'pg'
import { OperatorError } from '../../operator-error.ts'
import { hasState, SqlState } from '../../postgres/failures.ts'
import { digestOf } from '../../postgres/statements.ts'
import { connectionId } from '../connections.ts'
import { isCitus, type OperatorDatabase } from '../database.ts'
import { explainDatabaseError } from '../errors.ts'
import {
  beginLoad,
  type ListRows,
  MergeRejected,
  mayRepeat,
  merge,
  mergeSql,
  type Query,
  runInOrder,
  settled,
} from './merge.ts'
import { type ListOfRows, type Refresh, readRefresh } from './refresh-reader.ts'
import { rowTypes } from './row-types.ts'
import { readLines, type Source, untilAbort } from './source.ts'

/**
 * Limit of a line: 20,000 rows. JSON.parse cannot stop early, so it also bounds the memory of a hostile line. A
 * larger history comes by `import`.
 */
const MAXIMUM_LINE_BYTES = 16 * 1024 * 1024
/** Lines and their sizes that are read ahead, so that a locked connection does not stop all others. */
const MOST_WAITING = 64
const MOST_WAITING_BYTES = 16 * 1024 * 1024
const PAUSE_MS = 1_000
/** Attempts in a row whose login PostgreSQL rejects: somebody may be changing the password just now. */
const MOST_REJECTIONS = 30

interface Line extends Refresh {
  /** File and line number of the result. */
  place: { file?: string; line: number }
  size: number
}

export interface RefreshOptions {
  sources: Source[]
  jobs: number
  /** App whose connections the lines name, also by their external ids; undefined: ids of any app. */
  appId: string | undefined
  /** Resolves when the reader of the results has taken it; false: it has closed its input. */
  onResult(result: object): Promise<boolean>
  notice(sentence: string): void
}

interface Settings extends RefreshOptions {
  /** Citus must know the connection to plan a statement. */
  plans: 'auto' | 'force_generic_plan'
  /** False behind a pooler that does not keep prepared statements. */
  prepares: boolean
}

/**
 * Refreshes a connection for each line: all its lists in one transaction. Lines of one connection keep their order.
 * After an abort, it finishes the lines that sessions have begun.
 * @returns the number of lines by their results
 */
export async function refresh(database: OperatorDatabase, options: RefreshOptions) {
  const total = { refreshed: 0, failed: 0 }
  const plans = (await isCitus(database.db)) ? 'auto' : 'force_generic_plan'
  const settings: Settings = { ...options, plans, prepares: true }
  const stop = new AbortController()
  const signal = AbortSignal.any([database.signal, stop.signal])
  const sessions = fastq.promise(
    async (line: Line) => (signal.aborted ? undefined : await attempts(line, database, settings)),
    options.jobs,
  )
  const process = async (line: Line, before: Promise<void> | undefined) => {
    await before
    const found = line.errors.length > 0 ? { errors: line.errors } : await sessions.push(line)
    if (found === undefined) return
    total['errors' in found ? 'failed' : 'refreshed'] += 1
    const { connection } = line
    const result = { ...line.place, ...(connection && { connection }), ...found }
    if (!(await options.onResult(result)))
      throw new OperatorError('The reader of the results has ended, so the refresh ends, too.')
  }
  /** The last line of each connection in progress. */
  const last = new Map<string, Promise<void>>()
  const running = new Set<Promise<void>>()
  let size = 0
  let failure: unknown
  let onEnd = () => {}
  for await (const line of readRefreshes(options.sources, signal)) {
    const { connection = '' } = line
    const end = () => {
      running.delete(processed)
      if (last.get(connection) === processed) last.delete(connection)
      size -= line.size
      onEnd()
    }
    const fail = (error: unknown) => {
      failure ??= error
      stop.abort()
    }
    const processed = process(line, last.get(connection)).catch(fail).finally(end)
    running.add(processed)
    last.set(connection, processed)
    size += line.size
    while (running.size >= MOST_WAITING || size > MOST_WAITING_BYTES)
      await new Promise<void>((resolve) => {
        onEnd = resolve
      })
  }
  await Promise.all(running)
  if (failure !== undefined) throw failure
  return total
}

async function* readRefreshes(sources: Source[], signal: AbortSignal): AsyncGenerator<Line> {
  for (const source of sources) {
    const file = sources.length > 1 ? { file: source.name } : {}
    for await (const block of untilAbort(readLines(source, MAXIMUM_LINE_BYTES), signal))
      for (const line of block) {
        yield { ...readRefresh(line), place: { ...file, line: line.line }, size: line.text.length }
        if (signal.aborted) return
      }
  }
}

/**
 * Repeats a line until PostgreSQL has committed or rejected it. A line in doubt is sent again: if it is committed
 * already, nothing changes.
 * @returns the counts or errors of the line; undefined if an abort has interrupted it
 */
async function attempts(line: Line, database: OperatorDatabase, settings: Settings) {
  let noticed = ''
  let rejections = 0
  for (let attempt = 1; ; attempt += 1) {
    // Lines that were sent before another one has ended the use of prepared statements fail in the same way.
    const { prepares } = settings
    try {
      return await send(line, database.pool, settings)
    } catch (error) {
      if (error instanceof MergeRejected)
        return { errors: [{ ...error.place, detail: error.message }] }
      if (database.signal.aborted) return undefined
      if (await mayRepeat(error, attempt)) continue
      if (prepares && hasState(error, SqlState.lostPlan)) {
        settings.prepares = false
        continue
      }
      const detail = explainDatabaseError(error) ?? String(error)
      if (!isRejected(error) && !isLost(error)) return { errors: [{ detail }] }
      rejections = isRejected(error) ? rejections + 1 : 0
      if (rejections === MOST_REJECTIONS) throw error
      if (detail !== noticed) settings.notice(`${detail} Trying again until it responds.`)
      noticed = detail
      await sleep(PAUSE_MS, undefined, { signal: database.signal }).catch(() => {})
    }
  }
}

/** Sends a line once, and returns its session to the pool. */
async function send(line: Line, pool: pg.Pool, settings: Settings) {
  const client = await pool.connect()
  const { promise: ended, reject } = Promise.withResolvers<never>()
  const onEnd = () => reject(new Error('Connection terminated'))
  client.once('end', onEnd)
  let isBroken = false
  try {
    // pg keeps the statements of a connection that has ended.
    return await Promise.race([write(client, line, settings), ended])
  } catch (error) {
    isBroken = isLost(error)
    if (!isBroken)
      await Promise.race([client.query('rollback'), ended]).catch(() => {
        isBroken = true
      })
    throw error
  } finally {
    client.off('end', onEnd)
    client.release(isBroken)
  }
}

async function write(
  client: pg.PoolClient,
  { connection = '', lists, replace }: Line,
  { appId, plans, prepares }: Settings,
) {
  const inOrder = runInOrder(client)
  const run = <Result extends object>(text: string, values: unknown[]) =>
    inOrder<Result>({ ...(prepares && { name: nameOf(text) }), text, values })
  const load = async () => {
    const id = await connectionId(run, appId, connection)
    if (id === undefined) throw unknown(connection)
    const query: Query = (text, values = []) => run(text, [id, ...values])
    return await merge(query, lists.map(listRows), { replace })
  }
  const [, merged] = await settled([
    inOrder({ text: `${beginLoad(replace)}; set local plan_cache_mode = ${plans}` }),
    load(),
  ])
  if (merged === undefined) throw unknown(connection)
  const [dataVersion] = await settled([merged.written, inOrder({ text: 'commit' })])
  const counts = lists.map(({ type }, index) => [type.list, merged.counts[index]])
  return { dataVersion, ...Object.fromEntries(counts) }
}

const sqlOf = new Map(
  Object.values(rowTypes).map((type) => {
    const columns = type.columns.map(
      ({ name, sqlType }, index) => `(r ->> ${index})::${sqlType} as ${name}`,
    )
    // One parameter: a JSON array with an array of the columns for each row.
    const rows = `(
      select line, ${columns.join(', ')}
      from jsonb_array_elements($2::jsonb) with ordinality rows (r, line)) i`
    return [type, mergeSql(type, rows, 1)]
  }),
)

function listRows({ type, rows }: ListOfRows): ListRows {
  const sql = sqlOf.get(type) as ListRows['sql']
  return { type, count: rows.length, sql, values: [JSON.stringify(rows)] }
}

function unknown(name: string): MergeRejected {
  const detail = `the connection ${name.slice(0, 255)} does not exist`
  return new MergeRejected(detail, { field: 'connection' })
}

const names = new Map<string, string>()

/** Returns the name of a prepared statement. A pooler may share the session with other releases. */
function nameOf(text: string): string {
  const name = names.get(text) ?? `refresh ${digestOf(text)}`
  names.set(text, name)
  return name
}

/** SQLSTATEs, or their classes, after which the database may soon respond again. */
const LOST = /^(08|25006|53|55P03|57P)/

/** True if a login was rejected, or the database does not exist. */
const isRejected = (error: unknown) => hasState(error, /^(28|3D)/)

/** @throws an error that is not of PostgreSQL or the connection to it */
function isLost(error: unknown): boolean {
  if (error instanceof pg.DatabaseError || error instanceof MergeRejected)
    return hasState(error, LOST)
  if (explainDatabaseError(error) === undefined) throw error
  return true
}
