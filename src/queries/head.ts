import type { RawBuilder } from 'kysely'
import type { RawRows } from '../database/raw-rows.ts'
import { ConnectionNotFound, TokenExpired, TokenUnknown } from './refusals.ts'

/**
 * Every answer is one statement and so one snapshot. Its first row is the head: who called, which
 * connection, which version of its data, how many rows in all. The rows of the answer follow.
 */
export const HEAD_COLUMNS = [
  'app_id',
  'expired',
  'connection_id',
  'version',
  'total_items',
] as const

export type HeadColumns = Record<(typeof HEAD_COLUMNS)[number], unknown>

/**
 * The head's columns, over the look-up of queries/connection.ts.
 * @param totalItems the number of rows in all, null where there are no pages or the head alone is read
 */
export function headColumns(totalItems: RawBuilder<string | null>) {
  return [
    'caller.app_id',
    'caller.expired',
    'c.id as connection_id',
    'c.version',
    totalItems.as('total_items'),
  ] as const
}

export interface Head {
  /** The calling app. */
  appId: string
  /** Names the state of the connection's rows: `<changes>.<microseconds since 1970>`. */
  version: string
  totalItems: number
}

/**
 * Takes the head off an answer's rows.
 * @throws TokenUnknown, TokenExpired or ConnectionNotFound where there is nothing to answer with
 */
export function takeHead(rows: RawRows): Head {
  const fields = rows.shift()
  if (fields === undefined) throw new TokenUnknown()
  const [appId, expired, connectionId, version, totalItems] = fields
  if (typeof appId !== 'string') throw new Error('the head of an answer did not come first')
  if (expired === 't') throw new TokenExpired()
  if (connectionId === null || typeof version !== 'string') throw new ConnectionNotFound(appId)
  return { appId, version, totalItems: Number(totalItems ?? 0) }
}
