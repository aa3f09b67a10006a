/**
 * Files that run each night and before a release (`TEST_RUNS=1`), but not for a change. Each one runs a promise again on other
 * servers or releases, or waits for minutes. The values name what keeps the promise for a change.
 */
export const NIGHTLY: Record<string, string> = {
  'test/clients/installations.test.ts': 'clients/packages',
  'test/load/lost-history.test.ts': 'lists/history-model, lists/cursor-history',
  'test/load/network.test.ts': 'simulation, import/import-outages',
  'test/load/sandbox-days.test.ts': 'seeds/demo-advance, lists/change-feed',
  'test/load/unread-responses.test.ts': 'load/slow-clients, http/pipelining',
  'test/operator/changelog.test.ts': 'operator/operator-upgrade, settings/settings',
  'test/servers/attacks.test.ts': 'load/fair-shares, http/limits, http/delays',
  'test/servers/feed-model.test.ts': 'lists/history-model, lists/model, servers/pgbouncer',
  'test/servers/major-upgrade.test.ts': 'servers/postgres-15, servers/upgrade',
  'test/servers/moved-history.test.ts': 'lists/history-model, servers/postgres-15',
  'test/servers/refresh-model.test.ts': 'operator/refresh-model, load/operator-interrupt',
  'test/servers/restart.test.ts': 'simulation, postgres/failures, servers/failover',
  'test/servers/silence.test.ts': 'simulation, servers/pgbouncer',
  'test/typescript-client/sandbox-positions.test.ts': 'typescript-client/positions-by-day',
}

/** True for a run of everything. */
export const isNightly = Number(process.env.TEST_RUNS) >= 1
