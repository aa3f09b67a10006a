import { type RawBuilder, sql } from 'kysely'
import { parameter } from '../database/builder.ts'
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
  'unmodified',
  'total_items',
] as const

export type HeadColumns = Record<(typeof HEAD_COLUMNS)[number], unknown>

/**
 * The head's columns, over the look-up of queries/connection.ts.
 * @param totalItems the number of rows in all, null where the list is not paged
 */
export function headColumns(totalItems: RawBuilder<string | null>) {
  return [
    'caller.app_id',
    'caller.expired',
    'c.id as connection_id',
    'c.version',
    unmodified.as('unmodified'),
    totalItems.as('total_items'),
  ] as const
}

/** Whether parameter $3, the versions that the client has, names the version that is there. */
const known = parameter<string[]>(3, 'text[]')
const unmodified = sql<boolean>`coalesce(c.version = any(${known}) or '*' = any(${known}), false)`

export interface Head {
  /** The calling app. */
  appId: string
  /** Names the state of the connection's rows: `<changes>.<microseconds since 1970>`. */
  version: string
  /** Whether the client has this version already, so that no row was read. */
  unmodified: boolean
  totalItems: number
}

/**
 * Takes the head off an answer's rows.
 * @throws TokenUnknown, TokenExpired or ConnectionNotFound where there is nothing to answer with
 */
export function takeHead(rows: RawRows): Head {
  const fields = rows.shift()
  if (fields === undefined) throw new TokenUnknown()
  const [appId, expired, connectionId, version, unmodified, totalItems] = fields
  if (typeof appId !== 'string') throw new Error('the head of an answer did not come first')
  if (expired === 't') throw new TokenExpired()
  if (connectionId === null || typeof version !== 'string') throw new ConnectionNotFound(appId)
  return { appId, version, unmodified: unmodified === 't', totalItems: Number(totalItems ?? 0) }
}
