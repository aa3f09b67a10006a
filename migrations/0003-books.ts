import { type Kysely, sql } from 'kysely'

/**
 * The books: how many rows a connection has, in all, in each month and on each day, and a version of its
 * data. With them a total costs the same at any size, a deep page is found without walking to it, and an
 * ETag is right whoever wrote the rows. Triggers keep them, once a statement: a bulk load hardly notices.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const noun of ['portfolio_transaction', 'account_transaction']) {
    await createCounts(db, `${noun}_day`, 'effective_day')
    await createCounts(db, `${noun}_month`, 'first_day')
    await createTriggers(db, noun, changeOfTransactions(noun))
  }
  await createTriggers(db, 'assets_transfer_order', changeOfVersion)
}

type Change = Record<'insert' | 'update' | 'delete' | 'truncate', string>

async function createCounts(db: Kysely<unknown>, book: string, period: string): Promise<void> {
  await sql`
    create table ${sql.id(book)} (
      connection_id bigint not null references connection on delete cascade,
      ${sql.id(period)} date not null,
      -- A period that lost its last row leaves the book, so that it never outgrows the rows.
      row_count integer not null check (row_count > 0),
      primary key (connection_id, ${sql.id(period)})
    ) with (fillfactor = 80)`.execute(db)
}

/**
 * One function and trigger for each way in which a statement can change a table.
 *
 * A session plans the statements of such a function once, for as many rows as changed that first time.
 * They are therefore written so that the plan is good for any number: none joins a set with a table
 * (that became a scan of all days for one row, or of a million rows a million times), and none may
 * take to a sequential scan or to compilation because it was first planned on empty or on huge tables.
 */
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
          set search_path = pg_catalog, public, pg_temp set enable_seqscan = off set jit = off
        as $$ declare n record; begin ${change[event]} return null; end $$`)
      .execute(db)
    // Whoever may execute it could hang it on a table of their own, and so write the books at will.
    await sql.raw(`revoke execute on function ${name}() from public`).execute(db)
    await sql
      .raw(`
        create trigger ${name} after ${event} on ${table} ${transitions[event]}
          for each statement execute function ${name}()`)
      .execute(db)
  }
}

const newVersion = `
  data_version = data_version + 1,
  changed_at = greatest(clock_timestamp(), changed_at + interval '1 microsecond')`

/**
 * Counts on the connections' own rows. Doing this first, and in the order of ids, makes writers of one
 * connection wait for each other, and keeps two statements over the same connections from a deadlock.
 */
function touch(changes: string, column?: string): string {
  const count = column ? `${column} = ${column} + n.delta,` : ''
  return `
    for n in select connection_id, sum(delta) as delta from (${changes}) c group by 1 order by 1 loop
      update connection set ${count} ${newVersion} where id = n.connection_id;
    end loop;`
}

interface Book {
  table: string
  /** The column that names the period, and the period of a row's day. */
  period: string
  of: string
}

/** Of dates alone: date_trunc() would make a timestamp of it, in the time zone of the session. */
const firstOfMonth = 'effective_day - (extract(day from effective_day)::integer - 1)'

/** In order, so that the periods of a connection lie side by side. */
function gain({ table, period, of }: Book, changes: string): string {
  return `
    insert into ${table} as b (connection_id, ${period}, row_count)
      select connection_id, ${of}, sum(delta) from (${changes}) c
        group by 1, 2 having sum(delta) > 0 order by 1, 2
      on conflict (connection_id, ${period})
      do update set row_count = b.row_count + excluded.row_count;`
}

function lose({ table, period, of }: Book, changes: string): string {
  const entry = `connection_id = n.connection_id and ${period} = n.period`
  return `
    for n in select connection_id, ${of} as period, -sum(delta) as lost from (${changes}) c
        group by 1, 2 having sum(delta) < 0 loop
      delete from ${table} where ${entry} and row_count = n.lost;
      if not found then
        update ${table} set row_count = row_count - n.lost where ${entry};
      end if;
    end loop;`
}

function changeOfTransactions(noun: string): Change {
  const column = `${noun}s`
  const books: Book[] = [
    { table: `${noun}_day`, period: 'effective_day', of: 'effective_day' },
    { table: `${noun}_month`, period: 'first_day', of: firstOfMonth },
  ]
  const gains = (changes: string) => books.map((book) => gain(book, changes)).join('')
  const losses = (changes: string) => books.map((book) => lose(book, changes)).join('')
  const empty = books.map(({ table }) => `delete from ${table};`).join(' ')
  const minus = 'select connection_id, effective_day, -1 as delta from old_rows'
  const plus = 'select connection_id, effective_day, 1 as delta from new_rows'
  const both = `${minus} union all ${plus}`
  return {
    insert: `${touch(plus, column)} ${gains(plus)}`,
    update: `${touch(both, column)} ${gains(both)} ${losses(both)}`,
    delete: `${touch(minus, column)} ${losses(minus)}`,
    // Not truncate: a reader holds its lock on the days while it waits for the one on the rows.
    truncate: `${touchAll(`${column} = 0,`, `where ${column} > 0`)} ${empty}`,
  }
}

function touchAll(count: string, where: string): string {
  return `
    perform 1 from connection ${where} order by id for no key update;
    update connection set ${count} ${newVersion} ${where};`
}

const minus = 'select connection_id, -1 as delta from old_rows'
const plus = 'select connection_id, 1 as delta from new_rows'
const changeOfVersion: Change = {
  insert: touch(plus),
  update: touch(`${minus} union all ${plus}`),
  delete: touch(minus),
  // Which connections had orders is no longer known: every version moves, which is merely cautious.
  truncate: touchAll('', ''),
}
