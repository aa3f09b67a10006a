import { setTimeout as sleep } from 'node:timers/promises'
import fastq from 'fastq'
import pg from 'pg'
import { OperatorError } from '../../operator-error.ts'
import { hasState, SqlState } from '../../postgres/failures.ts'
import { bind, type Parameter, type Statement } from '../../postgres/statements.ts'
import { findConnectionId } from '../connections.ts'
import { isCitus, type OperatorDatabase, withoutTimeouts } from '../database.ts'
import { explainDatabaseError } from '../errors.ts'
import { MergeRejected, mayRepeat, merge, type Query, runInOrder, settled } from './merge.ts'
import { beginLoad } from './merge-statements.ts'
import { parseRefresh, type Refresh } from './refresh-parser.ts'
import { readLines, type Source, untilAbort } from './source.ts'

/** Limit of a line: 20,000 rows. JSON.parse cannot stop early: this bounds the memory of a hostile line. */
const MAXIMUM_LINE_BYTES = 16 * 1024 * 1024
/** Lines and their sizes that are read ahead, so that a locked connection does not stop all others. */
const MOST_WAITING = 64
const MOST_WAITING_BYTES = 16 * 1024 * 1024
const PAUSE_MS = 1_000

interface RefreshLine extends Refresh {
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
  pooler: boolean
  /** False behind a pooler that does not keep prepared statements. */
  prepares: boolean
}

/** Refreshes a connection for each line, in one transaction. Lines of one connection keep their order. */
export async function refresh(database: OperatorDatabase, options: RefreshOptions) {
  const total = { refreshed: 0, failed: 0 }
  const plans = (await isCitus(database.db)) ? 'auto' : 'force_generic_plan'
  const settings: Settings = { ...options, plans, pooler: database.pooler, prepares: true }
  const stop = new AbortController()
  const signal = AbortSignal.any([database.signal, stop.signal])
  const sessions = fastq.promise(
    async (line: RefreshLine) =>
      signal.aborted ? undefined : await attempts(line, database, settings),
    options.jobs,
  )
  const handle = async (line: RefreshLine, before: Promise<void> | undefined) => {
    await before
    const { place, connection, errors } = line
    const found = errors.length > 0 ? { errors } : await sessions.push(line)
    if (found === undefined) return
    total['errors' in found ? 'failed' : 'refreshed'] += 1
    if (!(await options.onResult({ ...place, ...(connection && { connection }), ...found })))
      throw new OperatorError('The reader of the results has ended, so the refresh ends, too.')
  }
  /** The last line of each connection in progress. */
  const last = new Map<string, Promise<void>>()
  const lines = new Set<Promise<void>>()
  let size = 0
  for await (const line of readRefreshes(options.sources, signal)) {
    const { connection = '' } = line
    const handled = handle(line, last.get(connection))
      .catch((error: unknown) => stop.abort(error))
      .finally(() => {
        if (last.get(connection) === handled) last.delete(connection)
        lines.delete(handled)
        size -= line.size
      })
    last.set(connection, handled)
    lines.add(handled)
    size += line.size
    while (lines.size >= MOST_WAITING || size > MOST_WAITING_BYTES) await Promise.race(lines)
  }
  await Promise.all(lines)
  stop.signal.throwIfAborted()
  return total
}

async function* readRefreshes(sources: Source[], signal: AbortSignal): AsyncGenerator<RefreshLine> {
  for (const source of sources) {
    const file = sources.length > 1 ? { file: source.name } : {}
    for await (const block of untilAbort(readLines(source, MAXIMUM_LINE_BYTES), signal))
      for (const line of block) {
        yield { ...parseRefresh(line), place: { ...file, line: line.line }, size: line.text.length }
        if (signal.aborted) return
      }
  }
}

/** Repeats a line until it is committed or rejected: a repetition changes nothing. @returns undefined at an abort */
async function attempts(line: RefreshLine, database: OperatorDatabase, settings: Settings) {
  let noticed = ''
  for (let attempt = 1; ; attempt += 1) {
    // Lines that were sent before another one has ended the use of prepared statements fail in the same way.
    const { prepares } = settings
    try {
      return await send(line, database.pool, settings)
    } catch (error) {
      if (error instanceof MergeRejected) return { errors: error.problems }
      if (database.signal.aborted) return undefined
      if (await mayRepeat(error, attempt)) continue
      if (prepares && hasState(error, SqlState.lostPlan)) {
        settings.prepares = false
        continue
      }
      const detail = explainDatabaseError(error) ?? String(error)
      if (!isLost(error)) return { errors: [{ detail }] }
      if (detail !== noticed) settings.notice(`${detail} Trying again until it responds.`)
      noticed = detail
      await sleep(PAUSE_MS, undefined, { signal: database.signal }).catch(() => {})
    }
  }
}

async function send(line: RefreshLine, pool: pg.Pool, settings: Settings) {
  const client = await pool.connect()
  const { promise: ended, reject } = Promise.withResolvers<never>()
  const onEnd = () => reject(new Error('Connection terminated'))
  client.once('end', onEnd)
  let isBroken = false
  try {
    // pg keeps the statements of a connection that has ended.
    return await Promise.race([write(client, line, settings), ended])
  } catch (error) {
    isBroken = !(error instanceof MergeRejected)
    if (!isBroken) client.query('rollback').catch(() => {})
    throw error
  } finally {
    client.off('end', onEnd)
    // The end of a session rolls back its line.
    client.release(isBroken)
  }
}

async function write(
  client: pg.PoolClient,
  { connection = '', lists, replace }: RefreshLine,
  { appId, plans, pooler, prepares }: Settings,
) {
  const inOrder = runInOrder(client)
  const run = <Result extends object>({ name, text }: Statement, values: Parameter[]) =>
    inOrder<Result>({ ...(prepares && { name }), text, values })
  const load = async () => {
    const id = await findConnectionId(run, appId, connection)
    if (id === undefined) return undefined
    const query: Query = (statement, values) =>
      run(statement, bind(statement, { connectionId: id, ...values }))
    return await merge(query, lists, { replace })
  }
  const begin =
    beginLoad(replace !== undefined) + (pooler ? `; ${withoutTimeouts('transaction')}` : '')
  const [, merged] = await settled([
    inOrder({ text: `${begin}; set local plan_cache_mode = ${plans}` }),
    load(),
  ])
  if (merged === undefined) {
    const detail = `the connection ${connection.slice(0, 255)} does not exist`
    throw new MergeRejected([{ field: 'connection', detail }])
  }
  const [dataVersion] = await settled([merged.written, inOrder({ text: 'commit' })])
  const counts = lists.map(({ type }, index) => [type.list, merged.counts[index]])
  return { dataVersion, ...Object.fromEntries(counts) }
}

/** States after which the database may soon respond again, and states of a rejected login. */
const LOST = /^(08|25006|53|55P03|57P)/
const REJECTED = /^(28|3D)/

/** @throws an error that is not of PostgreSQL or the connection to it, and one that rejects the login */
function isLost(error: unknown): boolean {
  if (error instanceof pg.DatabaseError && !hasState(error, REJECTED)) return hasState(error, LOST)
  if (explainDatabaseError(error) === undefined || hasState(error, REJECTED)) throw error
  return true
}
