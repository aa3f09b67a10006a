import { type Kysely, sql } from 'kysely'

/**
 * Refuses hours that sort wrongly as text, such as 9:05 after 10:15 (contract 13). `not valid`: rows that are stored already
 * stay as they are, until a write changes them. No table is read.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const table of ['portfolio_transaction', 'account_transaction'])
    await sql`
      alter table ${sql.table(table)} add constraint operation_hour_sorts
        check (operation_date_hour ~ '^([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]+)?)?$') not valid`.execute(
      db,
    )
}
