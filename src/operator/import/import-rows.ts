import type pg from 'pg'
import { OperatorError } from '../../operator-error.ts'
import { pluralize } from '../output.ts'
import { type ImportTypeName, importTypes } from './import-types.ts'
import {
  countRemovals,
  type DateRange,
  fillCompletion,
  findChanges,
  type ImportCounts,
  merge,
  removeOthers,
} from './merge.ts'
import type { Format, Source } from './source.ts'
import { stage, validate } from './staging.ts'

export interface ImportOptions {
  type: ImportTypeName
  /** Id of the connection in the database, not its token. */
  connectionId: string
  sources: Source[]
  /** Format of the sources: newline-delimited JSON by default. */
  format?: Format
  /** Validates and counts, but writes nothing. */
  dryRun?: boolean
  /** Removes the other rows of the connection. */
  replace?: Replacement | undefined
  /** Interrupts the import. */
  signal?: AbortSignal
  onProgress?: (progress: { step: 'Reading' | 'Writing'; rows: number }) => void
}

/** Range whose rows the input replaces. Transfer orders have no effective date, so they have no range. */
export interface Replacement extends DateRange {
  /** Accepts the removal of more than half of the rows in the range. */
  yes?: boolean | undefined
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
 * Imports all rows into a connection, or none if anything fails. Updates existing rows (by their id)
 * that differ.
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
    await client.query('begin')
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
  const { type: name, connectionId, sources, format = 'ndjson', signal } = options
  const { dryRun, replace, onProgress } = options
  const type = importTypes[name]
  // A bulk load takes long, and sorts and joins all its rows.
  await client.query(`set local statement_timeout = 0; set local work_mem = '64MB'`)
  const onRows = (rows: number) => onProgress?.({ step: 'Reading', rows })
  const staged = await stage(client, type, sources, { format, onRows, signal })
  onProgress?.({ step: 'Writing', rows: staged.rows })
  await validate(client, type, staged, replace ?? {})
  // The lock of the triggers: imports into one connection wait for each other from here on.
  const lock = 'select id, data_version as version from connection where id = $1 for no key update'
  const { rows } = await client.query<{ id: string; version: string }>(lock, [connectionId])
  const [connection] = rows
  if (connection === undefined) throw new OperatorError('The connection does not exist any more.')
  if (name === 'transfer-orders') await fillCompletion(client, type, connectionId)
  const changes = await findChanges(client, type, connectionId, staged.rows)
  const removals = replace && (await countRemovals(client, type, connectionId, replace))
  const counts = { ...changes, removed: removals?.removed ?? 0 }
  if (!dryRun && removals && !replace.yes) requireMost(removals)
  if (!dryRun) await merge(client, type, connection, counts)
  if (!dryRun && replace && counts.removed > 0)
    await removeOthers(client, type, connectionId, replace)
  return { counts, leftOut: staged.leftOut() }
}

/** @throws OperatorError when an import without `--yes` would remove more than half of the rows */
function requireMost({ present, removed }: { present: number; removed: number }): void {
  if (2 * removed <= present) return
  throw new OperatorError(
    `The input lacks ${removed} of the ${pluralize(present, 'row')} that it replaces; nothing was ` +
      'imported. --yes removes them.',
  )
}
