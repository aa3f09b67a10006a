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
 * Deletes the ids of rows that were removed before this number of days, and the versions that were replaced before.
 * Cursors from before such a removal or version expire (410). A transaction locks one connection, so imports into
 * others do not wait.
 */
export async function pruneCursors(db: Kysely<Tables>, days: number) {
  const pruned = { days, removals: 0, versions: 0, connections: 0 }
  const limit = sql`now() - make_interval(days => ${days}::integer)`
  await withoutTimeout(db, async (transaction) => {
    const replaced = sql`
      delete from connection_version v using connection_version next
      where next.connection_id = v.connection_id and next.data_version = v.data_version + 1
        and next.changed_at < ${limit}`
    pruned.versions = await changedRows(transaction, replaced)
  })
  for (const table of REMOVALS) {
    const { rows } = await sql<{ id: string; last: string }>`
      select connection_id as id, max(change_number) as last from ${sql.table(table)}
      where removed_at < ${limit} group by 1`.execute(db)
    for (const { id, last } of rows)
      await withoutTimeout(db, async (transaction) => {
        const moveHorizon = sql`
          update connection set change_horizon = ${last} where id = ${id} and change_horizon < ${last}`
        const remove = sql`
          delete from ${sql.table(table)} where connection_id = ${id} and change_number <= ${last}`
        pruned.connections += await changedRows(transaction, moveHorizon)
        pruned.removals += await changedRows(transaction, remove)
      })
  }
  return pruned
}
