import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { OperatorError } from '../../operator-error.ts'
import {
  LOAD_SETTINGS,
  merge,
  mergeSql,
  type Query,
  REPLACE_SETTINGS,
  type Replacement,
  type RowCounts,
  type RowSource,
  type Run,
  runInOrder,
} from './merge.ts'
import { type RowType, type RowTypeName, rowTypes } from './row-types.ts'
import type { Format, Source } from './source.ts'
import { type StagedInput, stage, validate } from './staging.ts'

export interface ImportOptions {
  type: RowTypeName
  /** Id of the connection in the database, not its token. */
  connectionId: string
  sources: Source[]
  /** Format of the sources: newline-delimited JSON by default. */
  format?: Format
  /** Validates and counts, but writes nothing. */
  dryRun?: boolean
  /** Removes the other rows of the connection. */
  replace?: Replacement | undefined
  signal?: AbortSignal
  onProgress?: (progress: { step: 'Reading' | 'Writing'; rows: number }) => void
}

export interface ImportCounts extends RowCounts {
  read: number
}

export interface Imported {
  counts: ImportCounts
  /** Fields that no row of the input had. They are null in all rows. */
  leftOut: string[]
}

const UNKNOWN =
  'The connection to PostgreSQL broke during the commit: the rows may be imported or not. Import them ' +
  'again: rows that are imported already do not change.'

/**
 * Imports all rows into a connection, or none if anything fails. Updates existing rows (by their id) that differ.
 * @throws ImportRejected when rows are invalid
 * @throws OperatorError when the connection does not exist, or `signal` interrupts the import
 */
export async function importRows(pool: pg.Pool, options: ImportOptions): Promise<Imported> {
  const client = await pool.connect()
  let broken = false
  let isCommitting = false
  // The statement in progress reports the error.
  const ignore = () => {}
  client.on('error', ignore)
  try {
    await client.query('begin isolation level read committed')
    const imported = await importInTransaction(client, options)
    options.signal?.throwIfAborted()
    isCommitting = !options.dryRun
    await client.query(options.dryRun ? 'rollback' : 'commit')
    return imported
  } catch (error) {
    await client.query('rollback').catch(() => {
      broken = true
    })
    if (isCommitting && broken) throw new OperatorError(UNKNOWN)
    if (options.signal?.aborted) throw new OperatorError('Interrupted; nothing was imported.')
    throw error
  } finally {
    client.off('error', ignore)
    client.release(broken)
  }
}

async function importInTransaction(
  client: pg.ClientBase,
  options: ImportOptions,
): Promise<Imported> {
  const { type: name, sources, format = 'ndjson', signal, replace, onProgress } = options
  const type = rowTypes[name]
  await client.query(LOAD_SETTINGS)
  const onRows = (rows: number) => onProgress?.({ step: 'Reading', rows })
  const range = replace ?? {}
  const staged = await stage(client, type, sources, { format, range, onRows, signal })
  onProgress?.({ step: 'Writing', rows: staged.rows })
  await validate(client, type, staged)
  const counts = await withRetries(client, () => write(client, type, staged, options))
  return { counts: { read: staged.rows, ...counts }, leftOut: staged.leftOut() }
}

/** Errors after which the same statements may succeed: serialization_failure, deadlock_detected. */
const REPEATED = ['40001', '40P01']
const ATTEMPTS = 20
const PAUSE_MS = 50

/** Repeats `work` after a deadlock, from a savepoint: the input can be read only once. */
async function withRetries<T>(client: pg.ClientBase, work: () => Promise<T>): Promise<T> {
  await client.query('savepoint staged')
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work()
    } catch (error) {
      const isRepeated = error instanceof pg.DatabaseError && REPEATED.includes(error.code ?? '')
      if (!isRepeated || attempt === ATTEMPTS) throw error
      await client.query('rollback to savepoint staged')
      await sleep(Math.random() * attempt * PAUSE_MS)
    }
  }
}

async function write(
  client: pg.ClientBase,
  type: RowType,
  { rows: count }: StagedInput,
  { connectionId, dryRun, replace }: ImportOptions,
): Promise<RowCounts> {
  const run = runInOrder(client)
  const query: Query = (text, values = []) => run({ text, values: [connectionId, ...values] })
  if (replace) await client.query(REPLACE_SETTINGS)
  const compare = () => findPresent(run, query, type)
  const merged = await merge(query, [{ type, count, all: source(type, 'import_row'), compare }], {
    dryRun,
    replace,
  })
  await merged?.written
  const [counts] = merged?.counts ?? []
  if (counts) return counts
  throw new OperatorError('The connection does not exist any more.')
}

/** Finds the rows that the connection has already, in the temporary table `present_row`. */
async function findPresent(run: Run, query: Query, type: RowType) {
  const all = source(type, 'import_row')
  const any = await query(`select from ${type.table} where connection_id = $1::bigint limit 1`)
  if (any.length === 0) return { present: 0, updated: 0, added: all, changed: all }
  await query(`create temporary table present_row on commit drop as ${all.sql.present}`)
  const [counts] = await run<{ present: number; updated: number }>({
    text: `select count(*)::integer as present, count(*) filter (where is_changed)::integer as updated
      from present_row`,
  })
  const { present = 0, updated = 0 } = counts ?? {}
  const added = present > 0 ? source(type, NEW) : all
  return { present, updated, added, changed: source(type, CHANGED) }
}

function source(type: RowType, from: string): RowSource {
  return { sql: mergeSql(type, `${from} i`, 0), values: [] }
}

/** Rows of the input that the connection does not have, and those that differ. */
const NEW = `(
  select i.* from import_row i left join present_row p on p.line = i.line where p.line is null)`
const CHANGED = `(
  select i.* from import_row i join present_row p on p.line = i.line where p.is_changed)`
