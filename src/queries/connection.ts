import { sql } from 'kysely'
import { build, parameter } from '../database/builder.ts'
import { type CallerKind, callingApp } from './calling-app.ts'

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
