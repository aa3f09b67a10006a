import { type Kysely, sql } from 'kysely'

/**
 * Versions that a connection had, each with the time of its change. A restore, a promotion or a new connection
 * never has the same version at the same time, so a cursor with both expires by itself. And change numbers that
 * the database gives itself, whatever a writer brings along.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  // Citus rejects triggers of distributed tables without it. PostgreSQL ignores the setting.
  await sql`set local citus.enable_unsafe_triggers = on`.execute(db)
  // In the order in which writers lock the tables.
  for (const list of lists) await numberInDatabase(db, list)
  await createVersions(db)
  await sql
    .raw(`
    create or replace function assets_transfer_order_row_counts_after_truncate() returns trigger
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp
    as $$ begin
      -- The trigger cannot see which connections had orders. The lists of transactions do not change.
      perform 1 from connection order by id for no key update;
      update connection set data_version = data_version + 1;
      return null;
    end $$`)
    .execute(db)
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

/** Creates the table of earlier versions. The newest version is in `connection`. */
async function createVersions(db: Kysely<unknown>): Promise<void> {
  await sql`
    create table connection_version (
      connection_id bigint not null,
      data_version bigint not null,
      changed_at timestamptz not null,
      primary key (connection_id, data_version)
    )`.execute(db)
  const { rows } = await sql`select from pg_class where relname = 'pg_dist_partition'`.execute(db)
  if (rows.length > 0)
    await sql`
      select create_distributed_table('connection_version', 'connection_id', colocate_with => 'connection')
      from pg_dist_partition where logicalrelid = 'connection'::regclass`.execute(db)
  // After the distribution: Citus requires that both tables of a foreign key are distributed.
  await sql`
    alter table connection_version
      add foreign key (connection_id) references connection on delete cascade`.execute(db)
  await sql`grant select on connection_version to investment_service`.execute(db)
  await sql`alter table connection_version enable row level security`.execute(db)
  await sql`
    create policy of_the_connection on connection_version for select to investment_service
      using (connection_id = nullif(current_setting('service.connection_id', true), '')::bigint)
  `.execute(db)
  // Behind a clock that stepped back, two histories would add the same microsecond. Random ones differ.
  await sql`
    create function remember_version() returns trigger language plpgsql security definer
      set search_path = pg_catalog, public, pg_temp
    as $$ begin
      insert into connection_version values (old.id, old.data_version, old.changed_at)
        on conflict (connection_id, data_version) do update set changed_at = excluded.changed_at;
      new.changed_at := clock_timestamp();
      if new.changed_at <= old.changed_at then
        new.changed_at := old.changed_at + (1 + random() * 99999) * interval '1 microsecond';
      end if;
      return new;
    end $$`.execute(db)
  await sql`revoke execute on function remember_version() from public`.execute(db)
  await sql`
    create trigger remember_version before update on connection
      for each row when (new.data_version > old.data_version)
      execute function remember_version()`.execute(db)
}

/** Replaces the triggers after INSERT and UPDATE. They do what those of migration 0003 did, and number the rows. */
async function numberInDatabase(db: Kysely<unknown>, list: List): Promise<void> {
  const { table, key } = list
  const minus =
    'select connection_id, effective_day, -1 as delta, null::bigint as number from old_rows'
  const plus =
    'select connection_id, effective_day, 1 as delta, change_number as number from new_rows'
  const both = `${minus} union all ${plus}`
  const ids = `select connection_id, ${key}`
  const bodies = {
    insert: `${updateConnections(plus, list)} ${addRows(plus, list)}`,
    update: `
      ${updateConnections(both, list)} ${addRows(both, list)} ${subtractRows(both, list)}
      ${recordRemovals(list, `${ids} from old_rows except ${ids} from new_rows order by 1`)}`,
  }
  for (const [event, body] of Object.entries(bodies))
    await sql
      .raw(`
        create or replace function ${table}_row_counts_after_${event}() returns trigger
          language plpgsql security definer
          set search_path = pg_catalog, public, pg_temp set jit = off set enable_seqscan = off
          set enable_bitmapscan = off set enable_sort = off set enable_indexscan = on
          set enable_hashjoin = off set enable_mergejoin = off
        as $$ declare n record; places tid[]; version bigint; last bigint; ordinal bigint;
          begin ${body} return null; end $$`)
      .execute(db)
  const trigger = sql.id(`${table}_row_counts_after_update`)
  await sql`drop trigger ${trigger} on ${sql.id(table)}`.execute(db)
  // Not for the updates that number rows.
  await sql`
    create trigger ${trigger} after update on ${sql.id(table)}
      referencing old table as old_rows new table as new_rows for each statement
      when (coalesce(current_setting('service.numbering', true), '') = '')
      execute function ${trigger}()`.execute(db)
}

/**
 * Updates totals and versions in the order of ids, as migration 0003 does. Then numbers the rows of the
 * statement, unless all have numbers of the new version, as those of the import. It numbers all rows between
 * the lowest and the highest number of the statement, because numbering a row again is correct. A join with the
 * changed rows could read all rows for each of them. Order and place of a row leave PostgreSQL one plan, with
 * any statistics.
 */
function updateConnections(changes: string, { table }: List): string {
  return `
    for n in select connection_id, sum(delta) as delta, min(number) as low, max(number) as high,
          count(number) > count(distinct number) as doubled
        from (${changes}) c group by 1 order by 1 loop
      update connection set ${table}s = ${table}s + n.delta, data_version = data_version + 1
        where id = n.connection_id returning data_version into version;
      -- The connection is deleted with its rows.
      continue when not found;
      continue when n.low is null
        or n.low > version << 31 and n.high <= (version << 31) + (1 << 30) and not n.doubled;
      perform set_config('service.numbering', 'on', true);
      -- Leaves PostgreSQL one plan: it visits the places.
      places := array(select ctid from ${table}
        where connection_id = n.connection_id and change_number >= n.low and change_number <= n.high
        order by change_number);
      perform set_config('enable_indexscan', 'off', true);
      update ${table} t set change_number = version << 31 | o.ordinal
        from unnest(places) with ordinality o (place, ordinal)
        where t.connection_id = n.connection_id and t.ctid = o.place
          and t.change_number <> version << 31 | o.ordinal;
      perform set_config('enable_indexscan', 'on', true);
      perform set_config('service.numbering', '', true);
    end loop;`
}

interface CountTable {
  table: string
  /** Column of the period: a day, or the first day of a month. */
  period: string
  /** SQL expression for the period of a changed row. */
  of: string
}

const countTables = ({ table }: List): CountTable[] => [
  { table: `${table}_day`, period: 'effective_day', of: 'effective_day' },
  {
    table: `${table}_month`,
    period: 'first_day',
    of: 'effective_day - (extract(day from effective_day)::integer - 1)',
  },
]

function addRows(changes: string, list: List): string {
  const add = ({ table, period, of }: CountTable) => `
    for n in select connection_id, ${of} as period, sum(delta) as gained from (${changes}) c
        group by 1, 2 having sum(delta) > 0 order by 1, 2 loop
      insert into ${table} as t (connection_id, ${period}, row_count)
        values (n.connection_id, n.period, n.gained)
        on conflict (connection_id, ${period})
        do update set row_count = t.row_count + excluded.row_count;
    end loop;`
  return countTables(list).map(add).join('')
}

function subtractRows(changes: string, list: List): string {
  const subtract = ({ table, period, of }: CountTable) => `
    for n in select connection_id, ${of} as period, -sum(delta) as lost from (${changes}) c
        group by 1, 2 having sum(delta) < 0 loop
      delete from ${table}
        where connection_id = n.connection_id and ${period} = n.period and row_count = n.lost;
      if not found then
        update ${table} set row_count = row_count - n.lost
          where connection_id = n.connection_id and ${period} = n.period;
      end if;
    end loop;`
  return countTables(list).map(subtract).join('')
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
