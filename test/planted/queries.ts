import type { Plant } from '../../tools/plant.ts'

/** Faults of statements, rows, migrations and rights. */

const AUTHENTICATION = ['test/security/authentication.test.ts']
const CHANGES = ['test/lists/change-feed.test.ts', 'test/lists/history-model.test.ts']
const transactions = 'migrations/0005-transaction-triggers.sql'
const orders = 'migrations/0005-order-triggers.sql'
const tables = 'migrations/0005-tables.sql'
const rights = 'migrations/0005-rights.sql'

export const plants: Plant[] = [
  {
    name: 'a revoked token is accepted',
    file: 'src/queries/connection.ts',
    search: "decode(given.token_hash, 'hex') and t.revoked_at is null",
    replace: "decode(given.token_hash, 'hex')",
    tests: AUTHENTICATION,
  },
  {
    name: 'a token that has expired is accepted',
    file: 'src/queries/connection.ts',
    search: 'coalesce(t.expires_at <= now(), false)',
    replace: 'coalesce(t.expires_at is null, false)',
    tests: AUTHENTICATION,
  },
  {
    name: 'the time of the last refresh is in the future',
    file: 'src/queries/connection.ts',
    search: 'floor(extract(epoch from c.refreshed_at))',
    replace: 'ceil(extract(epoch from c.refreshed_at))',
    tests: ['test/lists/conditional-requests.test.ts'],
  },
  {
    name: 'a cursor before the horizon is accepted',
    file: 'src/queries/changes.ts',
    search: '!(isKnown && latest >= BigInt(horizon ?? 0))',
    replace: '!(isKnown && latest >= 0n)',
    tests: ['test/lists/cursor-history.test.ts', ...CHANGES],
  },
  {
    name: 'a cursor of another history is accepted',
    file: 'src/queries/changes.ts',
    search: 'since.version === lookup.version || since.version === known',
    replace: "since.version !== ''",
    tests: ['test/lists/cursor-history.test.ts', ...CHANGES],
  },
  {
    name: 'the next page of changes leaves out its first one',
    file: 'src/queries/changes.ts',
    search: 'BigInt(nextPage) - 1n',
    replace: 'BigInt(nextPage)',
    tests: CHANGES,
  },
  {
    name: 'a row that came back is also removed',
    file: 'src/queries/changes.ts',
    search: '{id} >= r.',
    replace: '{id} > r.',
    tests: CHANGES,
  },
  {
    name: 'rows without an hour come first',
    file: 'src/queries/pages.ts',
    search: "'desc nulls last'",
    replace: "'desc'",
    tests: ['test/lists/order.test.ts', 'test/lists/model.test.ts'],
  },
  {
    name: 'the last day of a range has no rows',
    file: 'src/queries/pages.ts',
    search: "rows: sinceFrom.where('t.effective_day', '<=', p.to)",
    replace: "rows: sinceFrom.where('t.effective_day', '<', p.to)",
    tests: ['test/lists/pages.test.ts', 'test/lists/model.test.ts'],
  },
  {
    name: 'a statement may forget a filter',
    file: 'src/queries/pages.ts',
    search: 'if (!used.has(filter))',
    replace: 'if (!used.has(filter) && used.size === 0)',
    tests: ['test/postgres/every-list.test.ts', 'test/lists/parameters.test.ts'],
  },
  {
    name: 'the template of a row is that of other nulls',
    file: 'src/json/row-writer.ts',
    search: 'if (nulls !== lastNulls) selectTemplate(nulls)',
    replace: 'if (nulls > lastNulls) selectTemplate(nulls)',
    tests: ['test/postgres/row-writer.test.ts', 'test/lists/fields.test.ts'],
  },
  {
    name: 'the 30th of February is a day',
    file: 'src/schemas/formats.ts',
    search: 'return day <= 28 || new Date(value).getUTCDate() === day',
    replace: 'return day <= 30 || new Date(value).getUTCDate() === day',
    tests: ['test/lists/parameters.test.ts', 'test/import/import-problems.test.ts'],
  },
  {
    name: 'an hour without a zero in front is accepted',
    file: 'src/schemas/formats.ts',
    search: "'^(?:[01][0-9]|2[0-3]):",
    replace: "'^(?:[01]?[0-9]|2[0-3]):",
    tests: ['test/import/import-problems.test.ts', 'test/import/import.test.ts'],
  },
  {
    name: 'a deletion of orders gives no new version',
    file: orders,
    search: 'for n in select connection_id from old_rows group by 1 order by 1 loop',
    replace: 'for n in select connection_id from old_rows where false group by 1 order by 1 loop',
    tests: ['test/postgres/every-list.test.ts', ...['test/lists/conditional-requests.test.ts']],
  },
  {
    name: 'TRUNCATE of orders gives no new version',
    file: orders,
    search: 'from public.connection order by id for no key update loop',
    replace: 'from public.connection where false order by id for no key update loop',
    tests: ['test/postgres/every-list.test.ts', ...['test/lists/conditional-requests.test.ts']],
  },
  {
    name: 'a month that loses one row keeps its count',
    file: transactions,
    search: 'having sum(delta) < 0',
    replace: 'having sum(delta) < -1',
    tests: ['test/postgres/row-counts.test.ts'],
  },
  {
    name: 'a row that a trigger of the writer updates keeps its number',
    file: transactions,
    search:
      'if pg_trigger_depth() > 1 and not exists (select from new_rows where change_number = 0) then',
    replace: 'if pg_trigger_depth() > 1 then',
    tests: [
      'test/postgres/change-numbers.test.ts',
      'test/operator/writing.test.ts',
      'test/security/writer-rights.test.ts',
    ],
  },
  {
    name: 'no earlier version is remembered',
    file: tables,
    search: 'if old.changed_by is distinct from pg_current_xact_id() then',
    replace: 'if old.changed_by is null then',
    tests: ['test/lists/cursor-history.test.ts', ...CHANGES],
  },
  {
    name: 'a refresh may be before the year 1',
    file: tables,
    search: `constraint refreshed_in_years check (
    refreshed_at >= '0001-01-01 00:00:00+00' and`,
    replace: `constraint refreshed_in_years check (
    refreshed_at is not null and`,
    tests: ['test/operator/writing.test.ts', 'test/operator/operator-schema.test.ts'],
  },
  {
    name: 'the metric of refreshes counts days of two',
    file: tables,
    search: "interval '1 day' then '1d'",
    replace: "interval '2 days' then '1d'",
    tests: ['test/telemetry/metrics.test.ts', 'test/operator/operator-schema.test.ts'],
  },
  {
    name: 'the service reads the versions of other connections',
    file: rights,
    search: `for select to investment_service
  using (connection_id = nullif(current_setting('service.connection_id', true), '')::bigint)`,
    replace: `for select to investment_service
  using (true)`,
    tests: ['test/security/row-level-security.test.ts', 'test/security/least-privilege.test.ts'],
  },
  {
    name: 'a writer reads the hash of a token',
    file: rights,
    search: 'select (id, app_id, label,',
    replace: 'select (id, app_id, token_hash, label,',
    tests: ['test/operator/writing.test.ts'],
  },
]
