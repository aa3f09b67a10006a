import { type Kysely, sql } from 'kysely'

/**
 * Row counts of a connection (in total, by month and by day) and a version of its data. They make a total
 * equally fast at any size, and let a deep page skip the rows before it. The version makes the ETag. Triggers
 * write both once per statement, so every writer is covered and a bulk load stays fast.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const noun of ['portfolio_transaction', 'account_transaction']) {
    await createCounts(db, `${noun}_day`, 'effective_day')
    await createCounts(db, `${noun}_month`, 'first_day')
    await createTriggers(db, noun, transactionCounts(noun))
  }
  await createTriggers(db, 'assets_transfer_order', versionOnly)
}

/** Body of the trigger function for each event. */
type Bodies = Record<'insert' | 'update' | 'delete' | 'truncate', string>

async function createCounts(db: Kysely<unknown>, table: string, period: string): Promise<void> {
  await sql`
    create table ${sql.id(table)} (
      connection_id bigint not null references connection on delete cascade,
      ${sql.id(period)} date not null,
      -- The triggers delete a period without rows, so these tables never have more rows than the lists.
      row_count integer not null check (row_count > 0),
      primary key (connection_id, ${sql.id(period)})
    ) with (fillfactor = 80)`.execute(db)
}

/**
 * Creates one function and one trigger per event. PostgreSQL plans the statements of a function once
 * per session, for the rows of its first call. Each statement must therefore have a plan that fits any
 * number of rows. No statement joins the changed rows with a table. Such a plan scanned all days for
 * one row, or a million rows a million times. Sequential scans and JIT are off for the same reason.
 */
async function createTriggers(db: Kysely<unknown>, table: string, bodies: Bodies): Promise<void> {
  const transitions = {
    insert: 'referencing new table as new_rows',
    update: 'referencing old table as old_rows new table as new_rows',
    delete: 'referencing old table as old_rows',
    truncate: '',
  }
  for (const event of ['insert', 'update', 'delete', 'truncate'] as const) {
    const name = `${table}_row_counts_after_${event}`
    // SECURITY DEFINER: a role that may write rows needs no right to write row counts.
    await sql
      .raw(`
        create function ${name}() returns trigger language plpgsql security definer
          set search_path = pg_catalog, public, pg_temp set enable_seqscan = off set jit = off
        as $$ declare n record; at timestamptz; begin ${bodies[event]} return null; end $$`)
      .execute(db)
    // A role with EXECUTE could use it as a trigger on its own table and write any row count.
    await sql.raw(`revoke execute on function ${name}() from public`).execute(db)
    await sql
      .raw(`
        create trigger ${name} after ${event} on ${table} ${transitions[event]}
          for each statement execute function ${name}()`)
      .execute(db)
  }
}

/**
 * Updates the totals and versions in `connection`, before the other row counts and in the order of ids.
 * Writers of one connection then wait for each other, and statements over several connections cannot deadlock.
 */
function updateConnections(changes: string, column?: string): string {
  const count = column ? `${column} = ${column} + n.delta,` : ''
  return `
    for n in select connection_id, sum(delta) as delta from (${changes}) c group by 1 order by 1 loop
      select changed_at into at from connection where id = n.connection_id for no key update;
      at := greatest(clock_timestamp(), at + interval '1 microsecond');
      update connection set ${count} data_version = data_version + 1, changed_at = at
        where id = n.connection_id;
    end loop;`
}

interface CountTable {
  table: string
  /** Column of the period: a day, or the first day of a month. */
  period: string
  /** SQL expression for the period of a changed row. */
  of: string
}

/** Uses date arithmetic: date_trunc() returns a timestamp in the session's time zone. */
const firstOfMonth = 'effective_day - (extract(day from effective_day)::integer - 1)'

/** Adds in the order of periods, so that PostgreSQL stores those of a connection next to each other. */
function addRows({ table, period, of }: CountTable, changes: string): string {
  return `
    for n in select connection_id, ${of} as period, sum(delta) as gained from (${changes}) c
        group by 1, 2 having sum(delta) > 0 order by 1, 2 loop
      insert into ${table} as t (connection_id, ${period}, row_count)
        values (n.connection_id, n.period, n.gained)
        on conflict (connection_id, ${period})
        do update set row_count = t.row_count + excluded.row_count;
    end loop;`
}

function subtractRows({ table, period, of }: CountTable, changes: string): string {
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

function transactionCounts(noun: string): Bodies {
  const column = `${noun}s`
  const tables: CountTable[] = [
    { table: `${noun}_day`, period: 'effective_day', of: 'effective_day' },
    { table: `${noun}_month`, period: 'first_day', of: firstOfMonth },
  ]
  const add = (changes: string) => tables.map((table) => addRows(table, changes)).join('')
  const subtract = (changes: string) => tables.map((table) => subtractRows(table, changes)).join('')
  const empty = tables.map(({ table }) => `delete from ${table};`).join(' ')
  const minus = 'select connection_id, effective_day, -1 as delta from old_rows'
  const plus = 'select connection_id, effective_day, 1 as delta from new_rows'
  const both = `${minus} union all ${plus}`
  return {
    insert: `${updateConnections(plus, column)} ${add(plus)}`,
    update: `${updateConnections(both, column)} ${add(both)} ${subtract(both)}`,
    delete: `${updateConnections(minus, column)} ${subtract(minus)}`,
    // DELETE, because TRUNCATE could deadlock with a reader that has locked the days and waits for the rows.
    truncate: `${updateAllConnections(`${column} = 0,`, `where ${column} > 0`)} ${empty}`,
  }
}

function updateAllConnections(count: string, where: string): string {
  return `
    perform 1 from connection ${where} order by id for no key update;
    update connection set ${count} data_version = data_version + 1,
      changed_at = greatest(clock_timestamp(), changed_at + interval '1 microsecond') ${where};`
}

const minus = 'select connection_id, -1 as delta from old_rows'
const plus = 'select connection_id, 1 as delta from new_rows'
const versionOnly: Bodies = {
  insert: updateConnections(plus),
  update: updateConnections(`${minus} union all ${plus}`),
  delete: updateConnections(minus),
  // The trigger cannot see which connections had orders, so it changes every version.
  truncate: updateAllConnections('', ''),
}
