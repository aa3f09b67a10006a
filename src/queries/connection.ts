import { sql } from 'kysely'
import { build, parameter } from '../database/builder.ts'
import { type CallerKind, callingApp } from './calling-app.ts'

/**
 * The second step: the connection whose token hash is $2, among those of the calling app. One row for
 * every caller that is known, with nulls for the connection where the app has none of that token: a
 * token of another app and one that nobody has are the same to this look-up (contract 18).
 */
export function connectionOfApp(kind: CallerKind) {
  return build.selectFrom(callingApp(kind).as('caller')).leftJoinLateral(
    (eb) =>
      eb
        .selectFrom('connection as c')
        .whereRef('c.app_id', '=', 'caller.app_id')
        .where('c.token_hash', '=', parameter<Buffer>(2, 'bytea'))
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
