import type pg from 'pg'
import type { BenchDatabase } from '../data/database.ts'
import { table } from '../report/tables.ts'

/**
 * Disk space of a million portfolio transactions, with each index and with the row counts by month. Then removes all
 * rows, for the space of a million removals. Account transactions have nearly the same columns and indexes.
 */
export async function measureSizes({ owner }: BenchDatabase): Promise<string> {
  const lines = await sizesOf(owner, 'portfolio_transaction')
  await owner.query('delete from portfolio_transaction')
  lines.push(...(await sizesOf(owner, 'portfolio_transaction_removal')))
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
