import type pg from 'pg'
import type { BenchDatabase } from '../data/database.ts'
import { table } from '../report/tables.ts'

/**
 * Disk space of a million rows, with each index and with the row counts by month. Then removes all rows,
 * for the space of a million removals.
 */
export async function measureSizes({ owner }: BenchDatabase): Promise<string> {
  await copyToAccounts(owner)
  const lists = ['portfolio_transaction', 'account_transaction']
  const lines: string[][] = []
  for (const list of lists) lines.push(...(await sizesOf(owner, list)))
  for (const list of lists) {
    await owner.query(`delete from ${list}`)
    lines.push(...(await sizesOf(owner, `${list}_removal`)))
  }
  return table(['Table or index', 'MiB per million rows'], lines)
}

/** MiB per million rows of a table, of its indexes, and of its row counts if it has any. */
async function sizesOf(owner: pg.Pool, noun: string): Promise<string[][]> {
  const { rows } = await owner.query<{ name: string; bytes: string }>(
    `select c.relname as name,
       case when b.oid is null then pg_table_size(c.oid) else pg_total_relation_size(c.oid) end
         as bytes
     from pg_class c left join pg_index i on i.indexrelid = c.oid
       left join (select to_regclass($1 || '_month') as oid) b on b.oid = c.oid
     where c.oid = $1::regclass or i.indrelid = $1::regclass or b.oid is not null
     order by c.relkind desc, c.relname`,
    [noun],
  )
  const { rows: counts } = await owner.query<{ rows: string }>(
    `select count(*) as rows from ${noun}`,
  )
  const millions = Number(counts[0]?.rows) / 1e6
  return rows.map(({ name, bytes }) => [name, (Number(bytes) / 2 ** 20 / millions).toFixed(0)])
}

/**
 * Adds an account transaction for each portfolio transaction, with its change number, as the import does:
 * without it, a trigger would write each row twice.
 */
async function copyToAccounts(owner: pg.Pool): Promise<void> {
  const columns = `
    type, exchange_rate, amount, commission, taxes, currency, local_currency, description,
    operation_date_day, original_operation_date_day, value_date_day, original_value_date_day,
    operation_date_hour, original_operation_date_hour, value_date_hour, original_value_date_hour,
    original_operation_date_tz, original_value_date_tz, investment,
    change_number`
  const type = `case when type in ('COUPON', 'DIVIDENDS') then type else 'UNKNOWN' end`
  await owner.query(`
    insert into account_transaction (connection_id, movement_id, account_id, ${columns})
    select connection_id, transaction_id, portfolio_id, ${columns.replace('type', type)}
    from portfolio_transaction`)
  await owner.query('vacuum (analyze) account_transaction')
}
