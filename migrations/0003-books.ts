import { type Kysely, sql } from 'kysely'

/**
 * The books: how many rows a connection has, in all and on each day, and a version of its data. With
 * them a total costs the same at any size, a deep page is found without walking to it, and an ETag is
 * right whoever wrote the rows. Triggers keep them, once a statement: a bulk load hardly notices.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const noun of ['portfolio_transaction', 'account_transaction']) {
    await createDayCounts(db, noun)
    await createTriggers(db, noun, changeOfTransactions(noun))
  }
  await createTriggers(db, 'assets_transfer_order', changeOfVersion)
}

type Change = Record<'insert' | 'update' | 'delete' | 'truncate', string>

async function createDayCounts(db: Kysely<unknown>, noun: string): Promise<void> {
  await sql`
    create table ${sql.id(`${noun}_day`)} (
      connection_id bigint not null references connection on delete cascade,
      effective_day date not null,
      row_count integer not null check (row_count >= 0),
      primary key (connection_id, effective_day)
    ) with (fillfactor = 80)`.execute(db)
}

/** One function and trigger for each way in which a statement can change a table. */
async function createTriggers(db: Kysely<unknown>, table: string, change: Change): Promise<void> {
  const transitions = {
    insert: 'referencing new table as new_rows',
    update: 'referencing old table as old_rows new table as new_rows',
    delete: 'referencing old table as old_rows',
    truncate: '',
  }
  for (const event of ['insert', 'update', 'delete', 'truncate'] as const) {
    const name = `${table}_books_after_${event}`
    // The owner's rights, so that whoever may write rows need not be able to write the books.
    await sql
      .raw(`
        create function ${name}() returns trigger language plpgsql security definer
          set search_path = pg_catalog, public, pg_temp
        as $$ begin ${change[event]} return null; end $$`)
      .execute(db)
    await sql
      .raw(`
        create trigger ${name} after ${event} on ${table} ${transitions[event]}
          for each statement execute function ${name}()`)
      .execute(db)
  }
}

/**
 * Locking a connection's row first, in the order of ids, makes writers of one connection wait for each
 * other and two statements over the same connections never deadlock.
 */
function lockAndBump(touched: string, count?: { column: string; delta: string }): string {
  const counted = count ? `${count.column} = c.${count.column} + t.delta,` : ''
  return `
    perform 1 from connection where id in (select connection_id from ${touched})
      order by id for no key update;
    update connection c
      set ${counted} data_version = c.data_version + 1,
          changed_at = greatest(clock_timestamp(), c.changed_at + interval '1 microsecond')
      from (select connection_id, ${count?.delta ?? '0'} as delta from ${touched} group by 1) t
      where c.id = t.connection_id;`
}

function changeOfTransactions(noun: string): Change {
  const column = `${noun}s`
  // Days that lost their last row leave the book, so that it never outgrows the rows.
  const days = (changes: string) => `
    insert into ${noun}_day as d (connection_id, effective_day, row_count)
      select connection_id, effective_day, 0 from (${changes}) n group by 1, 2
      having sum(delta) <> 0
      on conflict do nothing;
    update ${noun}_day d set row_count = d.row_count + n.delta
      from (select connection_id, effective_day, sum(delta) as delta from (${changes}) x
            group by 1, 2 having sum(delta) <> 0) n
      where d.connection_id = n.connection_id and d.effective_day = n.effective_day;`
  const emptied = `
    delete from ${noun}_day d
      using (select distinct connection_id, effective_day from old_rows) o
      where d.connection_id = o.connection_id and d.effective_day = o.effective_day
        and d.row_count = 0;`
  const minus = 'select connection_id, effective_day, -1 as delta from old_rows'
  const plus = 'select connection_id, effective_day, 1 as delta from new_rows'
  const both = `(${minus} union all ${plus}) b`
  return {
    insert: `
      ${lockAndBump('new_rows', { column, delta: 'count(*)' })}
      insert into ${noun}_day as d (connection_id, effective_day, row_count)
        select connection_id, effective_day, count(*) from new_rows group by 1, 2
        on conflict (connection_id, effective_day)
        do update set row_count = d.row_count + excluded.row_count;`,
    update: `
      ${lockAndBump(both, { column, delta: 'sum(delta)' })}
      ${days(`select * from ${both}`)}
      ${emptied}`,
    delete: `
      ${lockAndBump('old_rows', { column, delta: '-count(*)' })}
      update ${noun}_day d set row_count = d.row_count - n.gone
        from (select connection_id, effective_day, count(*) as gone from old_rows group by 1, 2) n
        where d.connection_id = n.connection_id and d.effective_day = n.effective_day;
      ${emptied}`,
    truncate: `
      update connection set ${column} = 0, data_version = data_version + 1,
          changed_at = greatest(clock_timestamp(), changed_at + interval '1 microsecond')
        where ${column} > 0;
      truncate ${noun}_day;`,
  }
}

const changeOfVersion: Change = {
  insert: lockAndBump('new_rows'),
  update: lockAndBump(
    '(select connection_id from old_rows union select connection_id from new_rows) b',
  ),
  delete: lockAndBump('old_rows'),
  // Which connections had orders is no longer known: every version moves, which is merely cautious.
  truncate: `
    update connection set data_version = data_version + 1,
      changed_at = greatest(clock_timestamp(), changed_at + interval '1 microsecond');`,
}
