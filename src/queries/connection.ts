import type { RawBuilder } from 'kysely'
import { sql } from 'kysely'
import { build, parameter } from '../postgres/statements.ts'
import type { RawRows } from '../postgres/wire/raw-rows.ts'
import {
  type CallerKind,
  ConnectionNotFound,
  callingApp,
  ExpiredToken,
  InvalidToken,
} from './caller.ts'

/** $3 of every statement: the key of the connection, by which each table is restricted. */
export const connectionKeyParameter = parameter<string>(3, 'bigint')

/**
 * The second step: the connection whose token hash is $2, among those of the calling app. One row for
 * every caller that is known, with nulls for the connection where the app has none of that token: a
 * token of another app and one that nobody has are the same to this look-up (contract 18).
 */
export function connectionOfApp(kind: CallerKind) {
  const hash = sql<string>`encode(${parameter(2, 'bytea')}, 'hex')`
  // As with the caller, the look-up needs what set_config() returned, and so comes after it.
  const caller = build
    .selectFrom(callingApp(kind).as('app'))
    .select([
      'app.app_id',
      'app.expired',
      sql<string>`set_config('service.connection_hash', ${hash}, true)`.as('connection_hash'),
    ])
  return build.selectFrom(caller.as('caller')).leftJoinLateral(
    (eb) =>
      eb
        .selectFrom('connection as c')
        .where('c.id', '=', connectionKeyParameter)
        .whereRef('c.app_id', '=', 'caller.app_id')
        .where('c.token_hash', '=', sql<Buffer>`decode(caller.connection_hash, 'hex')`)
        .where('caller.expired', '=', sql.lit(false))
        .select([
          sql<string>`set_config('service.connection_id', c.id::text, true)::bigint`.as('id'),
          'c.portfolio_transactions',
          'c.account_transactions',
          dataVersion.as('version'),
        ])
        .as('c'),
    (join) => join.onTrue(),
  )
}

/**
 * `<count of changes>.<microseconds since 1970 of the last one>`: names one state of a connection's rows.
 * The time is part of it, so that a database which was restored to an earlier state does not come to the
 * same name again with other rows.
 */
const dataVersion = sql<string>`
  c.data_version || '.' || (extract(epoch from c.changed_at) * 1000000)::bigint`

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
 * @throws InvalidToken, ExpiredToken or ConnectionNotFound where there is nothing to answer with
 */
export function takeHead(rows: RawRows): Head {
  const fields = rows.shift()
  if (fields === undefined) throw new InvalidToken()
  const [appId, expired, connectionId, version, totalItems] = fields
  if (typeof appId !== 'string') throw new Error('the head of an answer did not come first')
  if (expired === 't') throw new ExpiredToken()
  if (connectionId === null || typeof version !== 'string') throw new ConnectionNotFound(appId)
  return { appId, version, totalItems: Number(totalItems ?? 0) }
}
