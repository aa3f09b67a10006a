import { type Kysely, type RawBuilder, sql } from 'kysely'
import type { Tables } from '../postgres/tables.ts'
import { withoutTimeout } from './deletion.ts'

/** Days for which the API guarantees a cursor of the change feed. */
export const GUARANTEED_DAYS = 400

const REMOVALS = ['portfolio_transaction_removal', 'account_transaction_removal']

async function changedRows(db: Kysely<Tables>, statement: RawBuilder<unknown>): Promise<number> {
  return Number((await statement.execute(db)).numAffectedRows ?? 0)
}

/**
 * Deletes the ids of rows that were removed before this number of days. Cursors from before such a removal
 * expire first (410). Also deletes the removals of cursors that have expired otherwise.
 */
export async function pruneRemovals(db: Kysely<Tables>, days: number) {
  return await withoutTimeout(db, async (transaction) => {
    const pruned = { days, removals: 0, connections: 0 }
    for (const table of REMOVALS) {
      const moveHorizon = sql`
        update connection c set change_horizon = r.last
        from (select connection_id, max(change_number) as last from ${sql.table(table)}
          where removed_at < now() - make_interval(days => ${days}::integer)
          group by connection_id) r
        where c.id = r.connection_id and c.change_horizon < r.last`
      const remove = sql`
        delete from ${sql.table(table)} r using connection c
        where c.id = r.connection_id and r.change_number <= c.change_horizon`
      pruned.connections += await changedRows(transaction, moveHorizon)
      pruned.removals += await changedRows(transaction, remove)
    }
    return pruned
  })
}

/**
 * Expires all cursors of the change feed, for a database that was restored to an earlier state. Its next
 * versions would otherwise be those of lost changes, and cursors of lost changes would become valid. So the
 * versions continue at the time in seconds. They have 32 bits, which are enough until 2106.
 */
export async function expireCursors(db: Kysely<Tables>): Promise<number> {
  const version = sql`greatest(data_version + 1000000, ${Math.floor(Date.now() / 1000)}::bigint)`
  return await withoutTimeout(db, (transaction) =>
    changedRows(
      transaction,
      sql`update connection set data_version = ${version}, change_horizon = ${version} << 31`,
    ),
  )
}
