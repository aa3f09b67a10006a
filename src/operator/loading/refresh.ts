import { EventEmitter, once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { OperatorError } from '../../operator-error.ts'
import type { OperatorDatabase } from '../database.ts'
import { explainDatabaseError } from '../errors.ts'
import { pluralize } from '../output.ts'
import {
  changeSteps,
  countRemovals,
  jsonRows,
  LOAD_SETTINGS,
  lacksMost,
  presentRows,
  REFRESHED,
  REPLACE_SETTINGS,
  type RowCounts,
  rangeValues,
  type Step,
} from './merge.ts'
import {
  type ListRows,
  type Refresh,
  type RefreshProblem,
  RefreshReader,
} from './refresh-reader.ts'
import { linesOf, plainText, type Source, wholeLines } from './source.ts'

/** Limit of a line. A larger history comes by `import`. */
const MAXIMUM_LINE_BYTES = 64 * 1024 * 1024
/** Lines and bytes that are read ahead, so that a locked connection does not stop all others. */
const MOST_WAITING = 64
const MOST_WAITING_BYTES = 64 * 1024 * 1024
const PAUSE_MS = 1_000

interface Line extends Refresh {
  /** File and line number of the result. */
  place: { file?: string; line: number }
  bytes: number
}

export interface RefreshOptions {
  sources: Source[]
  /** Number of sessions. */
  jobs: number
  /** App whose connections the lines name, also by their external ids; undefined: ids of any app. */
  appId: string | undefined
  /** False on Citus, see plannerSettings(). */
  genericPlans: boolean
  /** Resolves when the reader of the results has taken it; false: it has closed its input. */
  onResult(result: object): Promise<boolean>
  notice(sentence: string): void
}

/** Number of lines by their results. */
export interface Refreshed {
  refreshed: number
  failed: number
}

/**
 * Refreshes a connection for each line: all its lists in one transaction. Lines of one connection keep their order.
 * After an abort, it finishes the lines that sessions have begun.
 */
export async function refresh(
  database: OperatorDatabase,
  options: RefreshOptions,
): Promise<Refreshed> {
  const { signal } = database
  const total = { refreshed: 0, failed: 0 }
  const waiting: Line[] = []
  const busy = new Set<string>()
  const events = new EventEmitter().setMaxListeners(0)
  let bytes = 0
  let isRead = false
  let failure: unknown
  const stop = new AbortController()
  const isOver = () => stop.signal.aborted
  const report = async (line: Line, found: object | undefined) => {
    if (found === undefined) return
    total['errors' in found ? 'failed' : 'refreshed'] += 1
    const { connection } = line
    const result = { ...line.place, ...(connection && { connection }), ...found }
    if (!(await options.onResult(result)))
      throw new OperatorError('The reader of the results has ended, so the refresh ends, too.')
  }
  const fail = (error: unknown) => {
    failure ??= error
    stop.abort()
  }
  const work = async () => {
    const session = new Session(database, options)
    try {
      while (!isOver()) {
        const next = waiting.findIndex(({ connection = '' }) => !busy.has(connection))
        const [line] = next < 0 ? [] : waiting.splice(next, 1)
        if (line === undefined) {
          if (isRead && waiting.length === 0) return
          await once(events, 'change')
          continue
        }
        const { connection = '' } = line
        busy.add(connection)
        await report(line, await session.refresh(line))
        busy.delete(connection)
        bytes -= line.bytes
        events.emit('change')
      }
    } finally {
      session.close()
    }
  }
  const read = async () => {
    for await (const line of readLines(options.sources, stop.signal)) {
      if (isOver()) break
      if (line.errors.length > 0) {
        await report(line, { errors: line.errors })
        continue
      }
      bytes += line.bytes
      waiting.push(line)
      events.emit('change')
      while (!isOver() && (waiting.length >= MOST_WAITING || bytes > MOST_WAITING_BYTES))
        await once(events, 'change')
    }
    isRead = true
    events.emit('change')
  }
  signal.addEventListener('abort', () => stop.abort())
  stop.signal.addEventListener('abort', () => events.emit('change'))
  await Promise.all(
    [read(), ...Array.from({ length: options.jobs }, work)].map((each) => each.catch(fail)),
  )
  if (failure !== undefined) throw failure
  return total
}

async function* readLines(sources: Source[], signal: AbortSignal): AsyncGenerator<Line> {
  const reader = new RefreshReader()
  const aborted = new Promise<undefined>((resolve) =>
    signal.addEventListener('abort', () => resolve(undefined)),
  )
  for (const source of sources) {
    const file = sources.length > 1 ? { file: source.name } : {}
    const blocks = wholeLines(plainText(source, 'ndjson'), MAXIMUM_LINE_BYTES)
    let number = 0
    for (;;) {
      const next = await Promise.race([blocks.next(), aborted])
      if (next === undefined) return
      if (next.done) break
      for (const { start, end, problem } of linesOf(next.value, MAXIMUM_LINE_BYTES)) {
        number += 1
        const place = { ...file, line: number }
        const bytes = end - start
        const failed = { connection: undefined, lists: [], replace: undefined }
        // A slice: the reader goes to the start of the line.
        const line = problem
          ? { ...failed, errors: [{ detail: problem }] }
          : reader.read(next.value.subarray(start, end + 1))
        if (line) yield { ...line, place, bytes }
      }
    }
  }
}

/** A line cannot be written, and is reported. */
class LineRejected extends Error {
  readonly errors: RefreshProblem[]

  constructor(errors: RefreshProblem[]) {
    super('rejected')
    this.errors = errors
  }
}

interface Connection {
  id: string
  version: string
  dataVersion: string
}

const DATA_VERSION = `
  data_version || '.' || (extract(epoch from changed_at) * 1000000)::bigint as "dataVersion"`

/** A session of PostgreSQL, which is opened again when it is lost. */
class Session {
  readonly #database: OperatorDatabase
  readonly #options: RefreshOptions
  readonly #begin: string
  #client: pg.PoolClient | undefined
  /** Rejects when the connection of the client ends. */
  #ended: Promise<never> = new Promise(() => {})

  constructor(database: OperatorDatabase, options: RefreshOptions) {
    this.#database = database
    this.#options = options
    const plans = options.genericPlans ? 'force_generic_plan' : 'auto'
    this.#begin = `begin isolation level read committed;${LOAD_SETTINGS}; set local plan_cache_mode = ${plans}`
  }

  /** @returns the counts or errors of the line; undefined if an abort has interrupted it */
  async refresh(line: Line): Promise<object | undefined> {
    for (;;) {
      try {
        return await this.#attempt(line)
      } catch (error) {
        if (error instanceof LineRejected) return { errors: error.errors }
        if (this.#database.signal.aborted) return undefined
        const kind = kindOf(error)
        if (kind === 'lost') await this.#recover(error)
        else if (kind === 'final')
          return { errors: [{ detail: explainDatabaseError(error) ?? String(error) }] }
      }
    }
  }

  close(): void {
    const client = this.#client
    this.#client = undefined
    client?.release()
  }

  async #attempt(line: Line): Promise<object> {
    const client = this.#client ?? (await this.#connect())
    try {
      // pg keeps the statements of a connection that has ended.
      return await Promise.race([this.#write(client, line), this.#ended])
    } catch (error) {
      const isLost = !(error instanceof LineRejected) && kindOf(error) === 'lost'
      if (isLost) this.#discard(client)
      else await Promise.race([client.query('rollback'), this.#ended])
      throw error
    }
  }

  async #connect(): Promise<pg.PoolClient> {
    const client = await this.#database.pool.connect()
    this.#client = client
    this.#ended = new Promise<never>((_, reject) => {
      client.once('end', () => {
        reject(new Error('Connection terminated'))
        this.#discard(client)
      })
    })
    this.#ended.catch(() => {})
    return client
  }

  #discard(client: pg.PoolClient): void {
    if (this.#client !== client) return
    this.#client = undefined
    client.release(true)
  }

  /** Waits for a primary. The line is then sent again: if it is committed already, nothing changes. */
  async #recover(error: unknown): Promise<void> {
    const { signal, findPrimary } = this.#database
    this.#options.notice(
      `${explainDatabaseError(error) ?? String(error)} Trying again until it responds.`,
    )
    await sleep(PAUSE_MS, undefined, { signal }).catch(() => {})
    await findPrimary().catch(() => {})
  }

  async #write(client: pg.PoolClient, { connection = '', lists, replace }: Line): Promise<object> {
    const id = await this.#findConnection(client, connection)
    // One network round trip: pg sends all statements at once.
    const begun = client.query(replace ? `${this.#begin};${REPLACE_SETTINGS}` : this.#begin)
    const locked = run<Connection>(client, [`${REFRESHED}, ${DATA_VERSION}`, [id]])
    const range = (rows: ListRows) => rangeValues(rows.type, replace ?? {})
    const found = lists.map(async (list) => {
      const all = jsonRows(list.type, list.rows)
      const values = [id, ...all.values]
      const counting =
        replace &&
        run<Removals>(client, [countRemovals(list.type, all), [...values, ...range(list)]])
      const [present, counted] = await Promise.all([
        run<Present>(client, [presentRows(list.type, all), values]),
        counting,
      ])
      return { list, all, present, removals: counted?.[0] ?? { present: 0, removed: 0 } }
    })
    const [, [row], ...compared] = await settled([begun, locked, ...found])
    if (row === undefined) throw unknownConnection(connection)
    const counts: Partial<Record<string, RowCounts>> = {}
    const steps: Step[] = []
    let version = BigInt(row.version)
    for (const { list, all, present, removals } of compared) {
      if (replace && !replace.yes && lacksMost(removals)) throw truncated(list, removals)
      const changed = present.filter(({ is_changed }) => is_changed)
      const isPresent = new Set(present.map(({ line }) => Number(line)))
      const rows = {
        all,
        added: jsonRows(
          list.type,
          list.rows.filter((_, index) => !isPresent.has(index + 1)),
        ),
        changed: jsonRows(
          list.type,
          changed.map(({ line }) => list.rows[Number(line) - 1] ?? ''),
        ),
      }
      const own = {
        inserted: list.rows.length - present.length,
        updated: changed.length,
        unchanged: present.length - changed.length,
        removed: removals.removed,
      }
      counts[list.type.list] = own
      const changes = changeSteps(list.type, own, rows, { version, range: range(list) })
      version = changes.version
      steps.push(...changes.steps)
    }
    const written = settled(steps.map(([text, values]) => run(client, [text, [id, ...values]])))
    const newest: Promise<Pick<Connection, 'dataVersion'>[]> =
      steps.length === 0
        ? Promise.resolve([row])
        : run(client, [`select ${DATA_VERSION} from connection where id = $1`, [id]])
    const [, [after]] = await settled([written, newest, client.query('commit')])
    return { dataVersion: after?.dataVersion, ...counts }
  }

  /** @returns the id of a connection; with an app, of its connection with this id or external id */
  async #findConnection(client: pg.PoolClient, name: string): Promise<string> {
    const isId = /^-?\d{1,19}$/.test(name) && BigInt.asIntN(64, BigInt(name)) === BigInt(name)
    const { appId } = this.#options
    if (appId === undefined && isId) return name
    if (appId === undefined) throw unknownConnection(name)
    const text = `
      select id from connection where app_id = $1 and (external_id = $2 or id = $3::bigint)`
    const rows = await run<{ id: string }>(client, [text, [appId, name, isId ? name : null]])
    if (rows.length === 1 && rows[0]) return rows[0].id
    throw unknownConnection(name, rows.length > 1)
  }
}

interface Present {
  line: string
  is_changed: boolean
}

interface Removals {
  present: number
  removed: number
}

const names = new Map<string, string>()

/** Runs a prepared statement. */
async function run<Row extends pg.QueryResultRow>(
  client: pg.PoolClient,
  [text, values]: [string, (string | null)[]],
): Promise<Row[]> {
  const name = names.get(text) ?? `refresh ${process.pid} ${names.size}`
  names.set(text, name)
  return (await client.query<Row>({ name, text, values })).rows
}

/** Waits for all statements, and throws the error of the first that failed: the others follow from it. */
async function settled<T extends unknown[]>(
  statements: [...{ [K in keyof T]: Promise<T[K]> }],
): Promise<T> {
  const results = await Promise.allSettled(statements)
  const failed = results.find(({ status }) => status === 'rejected')
  if (failed?.status === 'rejected') throw failed.reason
  return results.map((result) => (result as PromiseFulfilledResult<unknown>).value) as T
}

function unknownConnection(name: string, isAmbiguous = false): LineRejected {
  const detail = isAmbiguous
    ? `${name} is the id of one connection, and the external id of another one`
    : `there is no connection ${name.slice(0, 60)}`
  return new LineRejected([{ field: 'connection', detail }])
}

function truncated({ type }: ListRows, { present, removed }: Removals): LineRejected {
  const detail =
    `the line lacks ${removed} of the ${pluralize(present, 'row')} that it replaces. ` +
    '"yes": true in `replace` removes them'
  return new LineRejected([{ list: type.list, detail }])
}

/** SQLSTATEs, or their classes, after which the database may soon respond again. */
const LOST = ['08', '25006', '53', '55P03', '57P']
const REPEATED = ['40001', '40P01']

/** @throws an error that is not of PostgreSQL or the connection to it */
function kindOf(error: unknown): 'lost' | 'repeated' | 'final' {
  if (!(error instanceof pg.DatabaseError)) {
    if (explainDatabaseError(error) === undefined) throw error
    return 'lost'
  }
  const { code = '' } = error
  if (REPEATED.includes(code)) return 'repeated'
  return LOST.some((state) => code.startsWith(state)) ? 'lost' : 'final'
}
