import type pg from 'pg'
import { OperatorError } from '../../operator-error.ts'
import { type ImportTypeName, importTypes } from './import-types.ts'
import { countChanges, fillCompletion, type ImportCounts, merge } from './merge.ts'
import type { Source } from './source.ts'
import { stage, validate } from './staging.ts'

export interface ImportOptions {
  type: ImportTypeName
  /** Id of the connection in the database, not its token. */
  connectionId: string
  /** Newline-delimited JSON: one row a line, with the field names of the API. */
  sources: Source[]
  /** Validates and counts, but writes nothing. */
  dryRun?: boolean
  onProgress?: (progress: { step: 'Reading' | 'Writing'; rows: number }) => void
}

export interface Imported {
  counts: ImportCounts
  /** Fields that no row of the input had. They are null in all rows. */
  leftOut: string[]
}

/**
 * Imports all rows into a connection, or none if anything fails. Updates existing rows (by their id)
 * that differ.
 * @throws ImportRejected when rows are invalid
 * @throws OperatorError when the connection does not exist
 */
export async function importRows(pool: pg.Pool, options: ImportOptions): Promise<Imported> {
  const client = await pool.connect()
  let broken = false
  // The statement in progress reports the error.
  const ignore = () => {}
  client.on('error', ignore)
  try {
    await client.query('begin')
    const imported = await importInTransaction(client, options)
    await client.query(options.dryRun ? 'rollback' : 'commit')
    return imported
  } catch (error) {
    await client.query('rollback').catch(() => {
      broken = true
    })
    throw error
  } finally {
    client.off('error', ignore)
    client.release(broken)
  }
}

async function importInTransaction(
  client: pg.ClientBase,
  { type: name, connectionId, sources, dryRun, onProgress }: ImportOptions,
): Promise<Imported> {
  const type = importTypes[name]
  // A bulk load takes long, and sorts and joins all its rows.
  await client.query(`set local statement_timeout = 0; set local work_mem = '64MB'`)
  const staged = await stage(client, type, sources, (rows) =>
    onProgress?.({ step: 'Reading', rows }),
  )
  onProgress?.({ step: 'Writing', rows: staged.rows })
  await validate(client, type, staged)
  // The lock of the triggers: imports into one connection wait for each other from here on.
  const lock = 'select from connection where id = $1 for no key update'
  const { rowCount } = await client.query(lock, [connectionId])
  if (rowCount === 0) throw new OperatorError('The connection does not exist any more.')
  if (name === 'transfer-orders') await fillCompletion(client, type, connectionId)
  const counts = await countChanges(client, type, connectionId)
  if (!dryRun) await merge(client, type, connectionId, counts)
  return { counts, leftOut: staged.leftOut() }
}
