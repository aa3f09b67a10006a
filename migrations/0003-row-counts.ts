import { type Kysely, sql } from 'kysely'

/**
 * Row counts of a connection (in total, by month and by day), a version of its data, and the numbers of its
 * changes. The counts make a total equally fast at any size, and let a deep page skip the rows before it. The
 * version makes the ETag. Change numbers and removals let a client update its copy. Triggers write them once
 * per statement, so every writer is covered and a bulk load stays fast.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await createRenumbering(db)
  for (const list of lists) {
    await createCounts(db, `${list.table}_day`, 'effective_day')
    await createCounts(db, `${list.table}_month`, 'first_day')
    await createRemovals(db, list)
    await createTriggers(db, list.table, transactionCounts(list))
  }
  await createTriggers(db, 'assets_transfer_order', versionOnly)
}

interface List {
  table: string
  /** Column with the id of a row. */
  key: string
}

const lists: List[] = [
  { table: 'portfolio_transaction', key: 'transaction_id' },
  { table: 'account_transaction', key: 'movement_id' },
]

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

/** Creates the function that marks an updated row as not numbered. */
async function createRenumbering(db: Kysely<unknown>): Promise<void> {
  await sql`
    create function number_again() returns trigger language plpgsql
    as $$ begin new.change_number := 0; return new; end $$`.execute(db)
  await sql`revoke execute on function number_again() from public`.execute(db)
}

/** Creates the table of removed ids, and the trigger that marks updated rows as not numbered. */
async function createRemovals(db: Kysely<unknown>, { table, key }: List): Promise<void> {
  await sql`
    create table ${sql.id(`${table}_removal`)} (
      connection_id bigint not null references connection on delete cascade,
      change_number bigint not null,
      ${sql.id(key)} uuid not null,
      removed_at timestamptz not null default now(),
      primary key (connection_id, change_number)
    )`.execute(db)
  await sql`
    create trigger ${sql.id(`${table}_number_again`)} before update on ${sql.id(table)}
      for each row when (new.change_number = old.change_number and old.change_number <> 0)
      execute function number_again()`.execute(db)
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
          set enable_hashjoin = off set enable_mergejoin = off
        as $$ declare n record; at timestamptz; version bigint; last bigint; ordinal bigint; begin ${bodies[event]} return null; end $$`)
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
 * The lock makes change numbers visible in ascending order.
 */
function updateConnections(changes: string, list?: List): string {
  const column = list && `${list.table}s`
  const count = column ? `${column} = ${column} + n.delta,` : ''
  return `
    for n in select connection_id, sum(delta) as delta from (${changes}) c group by 1 order by 1 loop
      select changed_at into at from connection where id = n.connection_id for no key update;
      -- The connection is deleted with its rows.
      continue when not found;
      at := greatest(clock_timestamp(), at + interval '1 microsecond');
      update connection set ${count} data_version = data_version + 1, changed_at = at
        where id = n.connection_id returning data_version into version;
      ${list ? numberRows(list) : ''}
    end loop;`
}

/**
 * Numbers the rows whose writer has left 0. The import numbers its rows itself, because this second update
 * costs as much as the first.
 */
function numberRows({ table, key }: List): string {
  return `
    update ${table} t set change_number = version << 31 | o.ordinal
      from (select ${key} as key, row_number() over () as ordinal from ${table}
        where connection_id = n.connection_id and change_number = 0) o
      where t.connection_id = n.connection_id and t.${key} = o.key;`
}

/** Records removed rows. Their ordinals follow those of any rows with the same version. */
function recordRemovals({ table, key }: List, rows: string): string {
  return `
    for n in ${rows} loop
      if n.connection_id is distinct from last then
        last := n.connection_id;
        ordinal := 1 << 30;
        select data_version into version from connection where id = last;
      end if;
      continue when version is null;
      ordinal := ordinal + 1;
      insert into ${table}_removal (connection_id, change_number, ${key})
        values (last, version << 31 | ordinal, n.${key});
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

function transactionCounts(list: List): Bodies {
  const { table: noun, key } = list
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
  const ids = `select connection_id, ${key}`
  return {
    insert: `${updateConnections(plus, list)} ${add(plus)}`,
    // The update of numberRows() runs this trigger too.
    update: `
      if not exists (select from old_rows where change_number <> 0) then return null; end if;
      ${updateConnections(both, list)} ${add(both)} ${subtract(both)}
      ${recordRemovals(list, `${ids} from old_rows except ${ids} from new_rows order by 1`)}`,
    delete: `${updateConnections(minus, list)} ${subtract(minus)}
      ${recordRemovals(list, `${ids} from old_rows order by 1`)}`,
    // DELETE, because TRUNCATE could deadlock with a reader that has locked the days and waits for the rows.
    truncate: `${updateAllConnections(`${column} = 0,`, `where ${column} > 0`)} ${empty}`,
  }
}

/** Also moves the horizon, because a trigger of TRUNCATE cannot see which rows were removed. */
function updateAllConnections(count: string, where: string): string {
  return `
    perform 1 from connection ${where} order by id for no key update;
    update connection set ${count} data_version = data_version + 1,
      change_horizon = (data_version + 1) << 31,
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
