import type pg from 'pg'
import { OperatorError } from '../../operator-error.ts'
import { type KindName, kinds } from './import-types.ts'
import { countChanges, fillCompletion, type ImportCounts, merge } from './merge.ts'
import type { Source } from './source.ts'
import { stage } from './staging.ts'
import { judge } from './validate.ts'

export interface ImportOptions {
  kind: KindName
  /** The connection's id in the database, not its token. */
  connectionId: string
  /** Newline-delimited JSON, one row a line, with the field names of the API. */
  sources: Source[]
  /** Only checks, and counts what an import would do. */
  dryRun?: boolean
  onProgress?: (progress: Progress) => void
}

export interface Imported {
  counts: ImportCounts
  /** Fields that no row of the input had: they are null in all of them. */
  leftOut: string[]
}

export interface Progress {
  step: 'reading' | 'writing'
  rows: number
}

/**
 * Imports rows into a connection: all of them or, when anything fails, none. Rows that are there
 * already, by their id, are updated where they differ and otherwise left alone.
 * @throws ImportRejected when rows are at fault
 * @throws OperatorError when the connection does not exist
 */
export async function importRows(pool: pg.Pool, options: ImportOptions): Promise<Imported> {
  const client = await pool.connect()
  let broken = false
  client.on('error', ignore)
  try {
    await client.query('begin')
    const imported = await importWithin(client, options)
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

/** A connection that breaks is told by the statement that it broke under. */
function ignore(): void {}

async function importWithin(
  client: pg.ClientBase,
  { kind: name, connectionId, sources, dryRun, onProgress }: ImportOptions,
): Promise<Imported> {
  const kind = kinds[name]
  // A bulk load may last, and sorts and joins as many rows as there are lines.
  await client.query(`set local statement_timeout = 0; set local work_mem = '64MB'`)
  const staged = await stage(client, kind, sources, (rows) =>
    onProgress?.({ step: 'reading', rows }),
  )
  onProgress?.({ step: 'writing', rows: staged.rows })
  await client.query(`analyze import_row (${kind.key.column})`)
  await judge(client, kind, staged)
  await lockConnection(client, connectionId)
  if (name === 'transfer-orders') await fillCompletion(client, kind, connectionId)
  const counts = await countChanges(client, kind, connectionId)
  if (!dryRun && counts.inserted + counts.updated > 0) await merge(client, kind, connectionId)
  return { counts, leftOut: staged.leftOut() }
}

/** The same lock as the books take: imports into one connection wait for each other from here on. */
async function lockConnection(client: pg.ClientBase, connectionId: string): Promise<void> {
  const { rowCount } = await client.query(
    'select from connection where id = $1 for no key update',
    [connectionId],
  )
  if (rowCount === 0) throw new OperatorError('The connection does not exist any more.')
}
