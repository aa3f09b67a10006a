/**
 * Tests of an area of the repository, in groups: the short ones with most of its cases first. A group runs if no
 * test of the groups before has failed.
 */
const AREAS: [RegExp, ...string[][]][] = [
  [
    /^src\/operator\/loading\/refresh/,
    ['test/operator/refresh.test.ts'],
    [
      'test/operator/{refresh-model,operator}.test.ts',
      'test/operator/writing.test.ts',
      'test/import/*.test.ts',
    ],
    ['test/servers/refresh-promotion.test.ts'],
  ],
  [
    /^src\/operator\/loading\//,
    ['test/import/{import,import-lines,import-csv,import-problems}.test.ts'],
    ['test/import/import-{replace,properties}.test.ts', 'test/operator/refresh.test.ts'],
    [
      'test/operator/{refresh-model,operator,operator-errors}.test.ts',
      'test/operator/writing.test.ts',
    ],
    ['test/load/operator-interrupt.test.ts'],
  ],
  [
    /^src\/operator\//,
    [
      'test/operator/{operator,operator-deletion,operator-errors,operator-verify,connections}.test.ts',
    ],
    [
      'test/operator/{operator-migrate,operator-errors,operator-cursors}.test.ts',
      'test/import/import-problems.test.ts',
    ],
    ['test/load/operator-interrupt.test.ts', 'test/servers/refresh-promotion.test.ts'],
  ],
  [
    /^src\/postgres\/(wire|pool|database)/,
    ['test/postgres/{wire,database-connections,failures}.test.ts'],
    [
      'test/http/health.test.ts',
      'test/load/{locks,network}.test.ts',
      'test/servers/{pgbouncer,silence}.test.ts',
    ],
    ['test/load/slow-exports.test.ts', 'test/servers/replica-reads.test.ts'],
  ],
  [
    /^src\/postgres\//,
    ['test/postgres/{connection-settings,failures}.test.ts', 'test/http/health.test.ts'],
    ['test/operator/operator-migrate.test.ts', 'test/repository/generated-files.test.ts'],
    [
      'test/servers/{failover,replica-reads,stale-standbys,without-primary}.test.ts',
      'test/servers/password-rotation.test.ts',
    ],
  ],
  [
    /^src\/(limits\/|context)/,
    ['test/http/{limits,overload,quota}.test.ts'],
    ['test/load/{fair-shares,load-shedding,memory-reuse}.test.ts', 'test/servers/attacks.test.ts'],
  ],
  [
    /^src\/http\/(openapi|docs-page)/,
    ['test/openapi/{document,responses}.test.ts', 'test/http/headers.test.ts'],
    ['test/clients/browser/*.test.ts'],
  ],
  [
    /^src\/http\/(authentication|identity)/,
    ['test/security/{authentication,identity-provider}.test.ts'],
    ['test/security/identity-provider.test.ts', 'test/http/{errors,overload}.test.ts'],
    [
      'test/load/fair-shares.test.ts',
      'test/servers/attacks.test.ts',
      'test/telemetry/metrics.test.ts',
    ],
  ],
  [
    /^src\/http\//,
    ['test/http/{headers,bad-input,errors,pipelining}.test.ts'],
    ['test/http/*.test.ts', 'test/lists/{conditional-requests,export}.test.ts'],
    ['test/load/unfinished-requests.test.ts', 'test/servers/{quota-redis,attacks}.test.ts'],
  ],
  [
    /^src\/telemetry\//,
    ['test/telemetry/*.test.ts'],
    ['test/load/collector.test.ts', 'test/servers/prometheus.test.ts'],
  ],
  [
    /^src\/json\//,
    ['test/postgres/row-writer.test.ts', 'test/lists/{fields,export}.test.ts'],
    ['test/lists/*.test.ts', 'test/http/overload.test.ts'],
    ['test/load/{slow-exports,interrupted-exports}.test.ts'],
  ],
  [
    /^src\/schemas\//,
    ['test/openapi/document.test.ts', 'test/lists/{parameters,fields}.test.ts'],
    ['test/import/import.test.ts'],
  ],
  [
    /^src\/(queries|routes)\//,
    ['test/lists/{parameters,pages,export,change-feed,conditional-requests}.test.ts'],
    ['test/lists/*.test.ts', 'test/repository/generated-files.test.ts'],
    ['test/http/*.test.ts', 'test/load/interrupted-exports.test.ts'],
  ],
  [
    /^src\//,
    ['test/settings/settings.test.ts', 'test/http/log*.test.ts'],
    ['test/load/start-errors.test.ts'],
    ['test/http/{health,access-log}.test.ts', 'test/openapi/document.test.ts'],
    ['test/telemetry/*.test.ts', 'test/openapi/document.test.ts'],
    [
      'test/load/{shutdown,log-output,collector}.test.ts',
      'test/servers/{password-rotation,prometheus}.test.ts',
    ],
  ],
  [
    /^migrations\//,
    ['test/postgres/change-numbers.test.ts', 'test/lists/{change-feed,fields}.test.ts'],
    ['test/postgres/row-counts.test.ts', 'test/lists/cursor-history.test.ts'],
    [
      'test/security/*.test.ts',
      'test/operator/operator-migrate.test.ts',
      'test/operator/writing.test.ts',
    ],
  ],
  [/^seeds\//, ['test/seeds/*.test.ts'], ['test/repository/readme.test.ts']],
  [
    /^clients\/python\//,
    ['test/clients/python.test.ts', 'test/typescript-client/lists.test.ts'],
    [
      'test/typescript-client/{sync,copies}.test.ts',
      'test/clients/{beancount,csv,python-options}.test.ts',
    ],
    ['test/clients/{packages,examples,faults,fault-table}.test.ts'],
  ],
  [
    /^clients\/typescript\//,
    ['test/typescript-client/{lists,sync}.test.ts'],
    ['test/typescript-client/*.test.ts', 'test/clients/browser/typescript-client.test.ts'],
    ['test/clients/{packages,examples,faults,fault-table}.test.ts'],
  ],
  [
    /^clients\/examples\//,
    ['test/clients/examples.test.ts', 'test/clients/run-code-samples.test.ts'],
  ],
  [
    /^deploy\/observability\//,
    ['test/repository/observability.test.ts'],
    ['test/servers/prometheus.test.ts'],
  ],
  [
    /^deploy\/(haproxy|systemd)\//,
    ['test/servers/several-instances.test.ts'],
    ['test/servers/rolling-restart.test.ts', 'test/servers/attacks.test.ts'],
  ],
  [/^deploy\/kubernetes\//, ['test/repository/kubernetes.test.ts']],
  [/^docs\/reference\/partitions\.sql/, ['test/postgres/partitions.test.ts']],
  [
    /^tools\//,
    ['test/repository/npm-test.test.ts', 'test/seeds/*.test.ts', 'test/load/start-errors.test.ts'],
    ['test/repository/readme.test.ts', 'test/load/embedded.test.ts'],
  ],
  [
    /^/,
    ['test/repository/ci.test.ts', 'test/settings/settings.test.ts'],
    ['test/{repository,settings,seeds}/*.test.ts', 'test/servers/several-instances.test.ts'],
  ],
]

/** All tests of these folders, for a mutant of `src` or of a migration that the tests of its area do not kill. */
const REST = ['test/{http,import,lists,operator,postgres,security,telemetry}/*.test.ts']

export function testsOf(file: string): string[][] {
  const [, ...groups] = AREAS.find(([pattern]) => pattern.test(file)) ?? [/^/]
  return /^(src|migrations)\//.test(file) ? [...groups, REST] : groups
}

/**
 * Files that the sample draws from. Left out: tests, benchmarks, checks of style, and files of services that no test
 * can start (workflows, Grafana). docs/reference/citus.sql needs Citus.
 */
export const FILES = [
  ...['src/**/*.ts', 'migrations/*.ts', 'seeds/*.ts', 'tools/*.ts', 'tools/embedded-postgres/*.ts'],
  ...['clients/*/src/**/*.{ts,py}', 'clients/*/examples/*', 'clients/examples/*.{ts,py}'],
  ...[
    'docker-compose.yml',
    'deploy/demo.env',
    'deploy/observability/{alerts,prometheus}.yml',
    'docs/reference/partitions.sql',
  ],
  ...['deploy/*/*', '.ci/run'],
]
