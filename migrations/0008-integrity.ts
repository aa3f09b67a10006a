import { type Kysely, sql } from 'kysely'

/**
 * What a role that may write rows could do by accident or on purpose, and must not. The triggers depend on no
 * setting of the session. The functions find no object that another role has put in front of the system's. A time
 * that a response shows has a year of four digits. A transaction adds one earlier version of a connection.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  // Citus rejects triggers of distributed tables without it. PostgreSQL ignores the setting.
  await sql`set local citus.enable_unsafe_triggers = on`.execute(db)
  // In the order in which writers lock the tables.
  for (const table of ['portfolio_transaction', 'account_transaction']) {
    await withoutSetting(db, table)
    await countDaysOnDemand(db, table)
  }
  await limitYears(db)
  await sql`alter table public.connection add column changed_by xid8`.execute(db)
  await replaceTriggers(db)
  await replaceSample(db)
}

/** Replaces the functions of all triggers. They are correct only with each other: no writer may run meanwhile. */
export async function replaceTriggers(db: Kysely<unknown>): Promise<void> {
  for (const table of ['portfolio_transaction', 'account_transaction'])
    await replaceFunctions(
      db,
      table,
      transactionTriggers({ table, key: await idColumn(db, table) }),
    )
  await replaceFunctions(db, 'assets_transfer_order', orderTriggers)
  await rememberOneVersion(db)
}

interface List {
  table: string
  /** Column with the id of a row. */
  key: string
}

/** The primary key is the connection and this column. */
async function idColumn(db: Kysely<unknown>, table: string): Promise<string> {
  const { rows } = await sql<{ name: string }>`
    select attname as name from pg_index
    join pg_attribute on attrelid = indrelid and attnum = indkey[1]
    where indrelid = ${table}::regclass and indisprimary`.execute(db)
  return rows[0]?.name ?? ''
}

/**
 * Replaces the table of row counts by day with a view. It took a sixth of the space of the rows. An index counts the
 * rows of a day as fast. Instances of release 1.0.0 read the view: they run on until they are replaced.
 */
async function countDaysOnDemand(db: Kysely<unknown>, table: string): Promise<void> {
  const view = sql.id(`${table}_day`)
  await sql`drop table public.${view}`.execute(db)
  await sql`
    create view public.${view} with (security_invoker = true) as
      select connection_id, effective_day, count(*)::integer as row_count
      from public.${sql.id(table)} group by connection_id, effective_day`.execute(db)
  await sql`grant select on public.${view} to investment_service`.execute(db)
}

/** Body of the trigger function for each event. */
type Bodies = Record<'insert' | 'update' | 'delete' | 'truncate', string>

/**
 * Replaces the functions of a table's triggers. PostgreSQL plans their statements once per session, for the rows of
 * the first call. Each statement must therefore have a plan that fits any number of rows: no sequential scan, no sort
 * and no join with the changed rows.
 */
async function replaceFunctions(db: Kysely<unknown>, table: string, bodies: Bodies): Promise<void> {
  for (const [event, body] of Object.entries(bodies))
    await sql
      .raw(`
        create or replace function public.${table}_row_counts_after_${event}() returns trigger
          language plpgsql security definer
          -- Where PUBLIC may create objects in the schema public, a role could add a function or an operator that
          -- PostgreSQL prefers, and it would run with the rights of the owner.
          set search_path = pg_catalog, pg_temp
          set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
          set enable_indexscan = on set enable_hashjoin = off set enable_mergejoin = off
        as $$ declare n record; places tid[]; version bigint; last bigint; ordinal bigint; time timestamptz;
          -- The session can choose the values of random(), but not those of gen_random_uuid().
          step interval := interval '1 microsecond'
            * (1 + ('x' || left(gen_random_uuid()::text, 4))::bit(16)::integer);
          begin ${body} return null; end $$`)
      .execute(db)
}

/**
 * Replaces the trigger after UPDATE. The old one had a condition on a setting, which every role can set. Its function
 * recognises the updates that number rows.
 */
async function withoutSetting(db: Kysely<unknown>, table: string): Promise<void> {
  const trigger = sql.id(`${table}_row_counts_after_update`)
  await sql`drop trigger ${trigger} on public.${sql.id(table)}`.execute(db)
  await sql`
    create trigger ${trigger} after update on public.${sql.id(table)}
      referencing old table as old_rows new table as new_rows for each statement
      execute function public.${trigger}()`.execute(db)
}

const minus =
  'select connection_id, effective_day, -1 as delta, null::bigint as number from old_rows'
const plus =
  'select connection_id, effective_day, 1 as delta, change_number as number from new_rows'

function transactionTriggers(list: List): Bodies {
  const { key } = list
  const both = `${minus} union all ${plus}`
  const ids = `select connection_id, ${key}`
  return {
    insert: `${updateConnections(plus, list)} ${addRows(plus, list)}`,
    // An update that numbers rows is nested, and leaves no row with 0. A role without the right to change_number
    // leaves 0 in each row that it updates (number_again), also in an update of its own trigger.
    update: `
      if pg_trigger_depth() > 1 and not exists (select from new_rows where change_number = 0) then
        return null;
      end if;
      ${updateConnections(both, list)} ${addRows(both, list)} ${subtractRows(both, list)}
      ${recordRemovals(list, `${ids} from old_rows except ${ids} from new_rows order by 1`)}`,
    delete: `${updateConnections(minus, list)} ${subtractRows(minus, list)}
      ${recordRemovals(list, `${ids} from old_rows order by 1`)}`,
    truncate: truncated(list),
  }
}

/**
 * Behind a clock that stepped back, two histories would add the same microsecond. Random ones differ. Citus accepts
 * neither a clock nor such a sum in an update.
 */
const nextVersion = (columns = '') => `
      select changed_at into time from public.connection where id = n.connection_id
        for no key update;
      time := case when time < clock_timestamp() then clock_timestamp() else time + step end;
      update public.connection set ${columns} data_version = data_version + 1,
        changed_at = time, changed_by = pg_current_xact_id()
        where id = n.connection_id`

/**
 * Updates totals and versions before the row counts and in the order of ids. Writers of one connection then wait for
 * each other, statements over several connections cannot deadlock, and change numbers become visible in ascending
 * order. Then numbers the rows of the statement, unless all have numbers of the new version, as those of the import.
 * It numbers all rows between the lowest and the highest number of the statement, because numbering a row again is
 * correct. A join with the changed rows could read all rows for each of them. Order and place of a row leave
 * PostgreSQL one plan, with any statistics.
 */
function updateConnections(changes: string, { table }: List): string {
  return `
    for n in select connection_id, sum(delta) as delta, min(number) as low, max(number) as high,
          count(number) > count(distinct number) as doubled
        from (${changes}) c group by 1 order by 1 loop
      ${nextVersion(`${table}s = ${table}s + n.delta,`)} returning data_version into version;
      -- The connection is deleted with its rows.
      continue when not found;
      continue when n.low is null
        or n.low > version << 31 and n.high <= (version << 31) + (1 << 30) and not n.doubled;
      -- Leaves PostgreSQL one plan: it visits the places.
      places := array(select ctid from public.${table}
        where connection_id = n.connection_id and change_number >= n.low and change_number <= n.high
        order by change_number);
      perform set_config('enable_indexscan', 'off', true);
      update public.${table} t set change_number = version << 31 | o.ordinal
        from unnest(places) with ordinality o (place, ordinal)
        where t.connection_id = n.connection_id and t.ctid = o.place
          and t.change_number <> version << 31 | o.ordinal;
      perform set_config('enable_indexscan', 'on', true);
    end loop;`
}

// Date arithmetic: date_trunc() returns a timestamp in the session's time zone.
const firstOfMonth = 'effective_day - (extract(day from effective_day)::integer - 1)'

/** Adds in the order of months, so that PostgreSQL stores those of a connection next to each other. */
function addRows(changes: string, { table }: List): string {
  return `
    for n in select connection_id, ${firstOfMonth} as month, sum(delta) as gained from (${changes}) c
        group by 1, 2 having sum(delta) > 0 order by 1, 2 loop
      update public.${table}_month set row_count = row_count + n.gained
        where connection_id = n.connection_id and first_day = n.month;
      if not found then
        insert into public.${table}_month (connection_id, first_day, row_count)
          values (n.connection_id, n.month, n.gained);
      end if;
    end loop;`
}

function subtractRows(changes: string, { table }: List): string {
  return `
    for n in select connection_id, ${firstOfMonth} as month, -sum(delta) as lost from (${changes}) c
        group by 1, 2 having sum(delta) < 0 loop
      delete from public.${table}_month
        where connection_id = n.connection_id and first_day = n.month and row_count = n.lost;
      if not found then
        update public.${table}_month set row_count = row_count - n.lost
          where connection_id = n.connection_id and first_day = n.month;
      end if;
    end loop;`
}

/** Records removed rows. Their ordinals follow those of any rows with the same version. */
function recordRemovals({ table, key }: List, rows: string): string {
  return `
    for n in ${rows} loop
      if n.connection_id is distinct from last then
        last := n.connection_id;
        ordinal := 1 << 30;
        select data_version into version from public.connection where id = last;
      end if;
      continue when version is null;
      ordinal := ordinal + 1;
      insert into public.${table}_removal (connection_id, change_number, ${key})
        values (last, version << 31 | ordinal, n.${key});
    end loop;`
}

/** A trigger of TRUNCATE cannot see which rows were removed, so it also moves the horizon of changes. */
function truncated({ table }: List): string {
  const rows = `${table}s`
  return `
    for n in select id as connection_id from public.connection where ${rows} > 0
        order by id for no key update loop
      ${nextVersion(`${rows} = 0, change_horizon = (data_version + 1) << 31,`)};
    end loop;
    -- TRUNCATE could deadlock with a reader that has locked the counts and waits for the rows.
    delete from public.${table}_month;`
}

const nextVersions = (changes: string) => `
  for n in select connection_id from (${changes}) c group by 1 order by 1 loop
    ${nextVersion()};
  end loop;`

const orderTriggers: Bodies = {
  insert: nextVersions('select connection_id from new_rows'),
  update: nextVersions(
    'select connection_id from old_rows union all select connection_id from new_rows',
  ),
  delete: nextVersions('select connection_id from old_rows'),
  // The trigger cannot see which connections had orders.
  truncate: `
    for n in select id as connection_id from public.connection order by id for no key update loop
      ${nextVersion()};
    end loop;`,
}

/**
 * Limits the times that a response shows to the years 1 to 9999, as RFC 3339 does. Validated by the next migration,
 * because that reads whole tables, and this one locks them.
 */
async function limitYears(db: Kysely<unknown>): Promise<void> {
  const inYears = (column: string) =>
    `${column} >= '0001-01-01 00:00:00+00' and ${column} < '10000-01-01 00:00:00+00'`
  await sql
    .raw(`
      alter table public.connection
        add constraint changed_in_years check (${inYears('changed_at')}) not valid,
        add constraint refreshed_in_years check (${inYears('refreshed_at')}) not valid`)
    .execute(db)
  await sql
    .raw(`
      alter table public.assets_transfer_order
        drop constraint assets_transfer_order_completed_at_check,
        add constraint completed_in_years check (${inYears('completed_at')}) not valid`)
    .execute(db)
}

/**
 * Keeps an earlier version only if another transaction wrote it. Nobody else has seen the versions between two
 * statements of a transaction.
 */
async function rememberOneVersion(db: Kysely<unknown>): Promise<void> {
  // A trigger before UPDATE would lock the row once more, which PostgreSQL logs. ON CONFLICT logs twice, too.
  await sql`
    create or replace function public.remember_version() returns trigger
      language plpgsql security definer set search_path = pg_catalog, pg_temp
      set enable_seqscan = off set enable_bitmapscan = off
    as $$ begin
      if old.changed_by is distinct from pg_current_xact_id() then
        update public.connection_version set changed_at = old.changed_at
          where connection_id = old.id and data_version = old.data_version;
        if not found then
          insert into public.connection_version values (old.id, old.data_version, old.changed_at);
        end if;
      end if;
      return null;
    end $$`.execute(db)
  await sql`drop trigger remember_version on public.connection`.execute(db)
  await sql`
    create trigger remember_version after update on public.connection
      for each row when (new.data_version > old.data_version)
      execute function public.remember_version()`.execute(db)
}

/** Counts a random sample. The session could choose the values of random(), and so the ids of the sample. */
async function replaceSample(db: Kysely<unknown>): Promise<void> {
  await sql`
    create or replace function public.sample_refreshes() returns table (refreshed text, connections bigint)
      language plpgsql security definer set search_path = pg_catalog, pg_temp
    as $$ declare start bigint := ('x' || translate(left(gen_random_uuid()::text, 13), '-', '')
        || right(gen_random_uuid()::text, 4))::bit(64)::bigint;
    begin
      return query
        select case
            when c.refreshed_at is null then 'never'
            when c.refreshed_at > now() - interval '1 day' then '1d'
            when c.refreshed_at > now() - interval '2 days' then '2d'
            when c.refreshed_at > now() - interval '7 days' then '7d'
            else 'older' end, count(*)
        from (
          (select refreshed_at from public.connection where id >= start order by id limit 5000)
          union all
          (select refreshed_at from public.connection where id < start order by id limit 5000)
          limit 5000) c
        group by 1;
    end $$`.execute(db)
}
