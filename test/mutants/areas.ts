/**
 * Tests of an area of the repository, in groups: the short ones with most of its cases first. A group runs if no
 * test of the groups before has failed.
 */
const AREAS: [RegExp, ...string[][]][] = [
  [
    /^src\/operator\/loading\/(refresh|staging)/,
    ['test/operator/refresh.test.ts'],
    ['test/operator/{refresh-model,writing,operator}.test.ts', 'test/import/*.test.ts'],
    ['test/faults/replicas/refresh-promotion.test.ts'],
  ],
  [
    /^src\/operator\/loading\//,
    ['test/import/{import,import-lines,import-csv,import-problems}.test.ts'],
    ['test/import/import-{replace,properties}.test.ts', 'test/operator/refresh.test.ts'],
    ['test/operator/{refresh-model,writing,operator,operator-errors}.test.ts'],
    ['test/faults/operations/operator-interrupt.test.ts'],
  ],
  [
    /^src\/operator\//,
    [
      'test/operator/{operator,operator-deletion,operator-errors,operator-verify,connections}.test.ts',
    ],
    [
      'test/operator/{operator-migrate,operator-database,operator-cursors}.test.ts',
      'test/import/import-problems.test.ts',
    ],
    [
      'test/faults/operations/operator-interrupt.test.ts',
      'test/faults/replicas/refresh-promotion.test.ts',
    ],
  ],
  [
    /^src\/postgres\/(wire|connections|server|database)/,
    ['test/postgres/{wire,database-connections,request-deadline,damaged-stream}.test.ts'],
    ['test/http/health.test.ts', 'test/faults/database/*.test.ts'],
    ['test/faults/overload/slow-exports.test.ts', 'test/faults/replicas/reads.test.ts'],
  ],
  [
    /^src\/postgres\//,
    [
      'test/postgres/{connection-settings,timelines,transient-errors}.test.ts',
      'test/http/health.test.ts',
    ],
    ['test/operator/operator-migrate.test.ts', 'test/postgres/sql-text.test.ts'],
    ['test/faults/replicas/*.test.ts', 'test/faults/operations/password-rotation.test.ts'],
  ],
  [
    /^src\/limits\//,
    ['test/limits/*.test.ts', 'test/http/{request-limit,quota}.test.ts'],
    ['test/faults/overload/{fair-shares,load-shedding,attacks,memory-reuse}.test.ts'],
  ],
  [
    /^src\/http\/(openapi|docs-page)/,
    ['test/openapi/{document,responses}.test.ts', 'test/http/memory-file.test.ts'],
    ['test/openapi/{docs-page,docs-screens}.test.ts'],
  ],
  [
    /^src\/http\/(authentication|identity|jwks)/,
    ['test/security/{authentication,identity-provider}.test.ts'],
    [
      'test/security/{signing-keys,token-rotation}.test.ts',
      'test/http/{order-of-checks,request-limit}.test.ts',
    ],
    ['test/faults/overload/{attacks,fair-shares}.test.ts', 'test/telemetry/metrics.test.ts'],
  ],
  [
    /^src\/http\//,
    ['test/http/{headers,bad-input,error-body,methods,connections,pipelining}.test.ts'],
    ['test/http/*.test.ts', 'test/lists/{conditional-requests,export}.test.ts'],
    ['test/faults/overload/{quota-redis,unfinished-requests,attacks}.test.ts'],
  ],
  [/^src\/telemetry\//, ['test/telemetry/*.test.ts'], ['test/faults/telemetry/*.test.ts']],
  [
    /^src\/json\//,
    ['test/json/*.test.ts', 'test/lists/{text,decimals,export}.test.ts'],
    ['test/lists/*.test.ts', 'test/http/large-rows.test.ts'],
    ['test/faults/overload/{slow-exports,interrupted-exports}.test.ts'],
  ],
  [
    /^src\/schemas\//,
    ['test/openapi/document.test.ts', 'test/lists/{parameters,fields,types}.test.ts'],
    ['test/import/import.test.ts'],
  ],
  [
    /^src\/(queries|routes)\//,
    ['test/lists/{parameters,links,export,change-feed,conditional-requests}.test.ts'],
    ['test/lists/*.test.ts', 'test/postgres/sql-text.test.ts'],
    ['test/http/*.test.ts', 'test/faults/overload/interrupted-exports.test.ts'],
  ],
  [
    /^src\//,
    ['test/start/{config-errors,env-file}.test.ts', 'test/http/log*.test.ts'],
    ['test/faults/operations/start-errors.test.ts'],
    ['test/http/{health,access-log,connections}.test.ts', 'test/openapi/document.test.ts'],
    ['test/telemetry/*.test.ts', 'test/openapi/docs-page.test.ts'],
    [
      'test/faults/operations/{shutdown,log-output,password-rotation}.test.ts',
      'test/faults/telemetry/*.test.ts',
    ],
  ],
  [
    /^migrations\//,
    [
      'test/postgres/{change-numbers,sql-text}.test.ts',
      'test/lists/{change-feed,fields,data-version}.test.ts',
    ],
    ['test/postgres/row-counts.test.ts', 'test/lists/cursor-history.test.ts'],
    ['test/security/*.test.ts', 'test/operator/{writing,operator-migrate}.test.ts'],
  ],
  [/^seeds\//, ['test/start/{seeds,demo-advance}.test.ts'], ['test/start/readme.test.ts']],
  [
    /^clients\/python\//,
    ['test/clients/{python,options,lists}.test.ts'],
    ['test/clients/{sync,copies,formats,csv,every-digit}.test.ts'],
    ['test/faults/clients/{packages,examples,faults,fault-table}.test.ts'],
  ],
  [
    /^clients\/typescript\//,
    ['test/clients/{options,lists,sync}.test.ts'],
    ['test/clients/{copies,formats,csv,every-digit,browser}.test.ts'],
    ['test/faults/clients/{packages,examples,faults,fault-table}.test.ts'],
  ],
  [/^examples\//, ['test/faults/clients/examples.test.ts', 'test/openapi/code-samples.test.ts']],
  [/^observability\//, ['test/telemetry/*.test.ts'], ['test/faults/telemetry/prometheus.test.ts']],
  [
    /^deploy\/(haproxy|systemd)\//,
    ['test/faults/operations/several-instances.test.ts'],
    ['test/faults/operations/rolling-restart.test.ts', 'test/faults/overload/attacks.test.ts'],
  ],
  [/^deploy\/kubernetes\//, ['test/start/kubernetes.test.ts']],
  [/^docs\/partitions\.sql/, ['test/postgres/partitions.test.ts']],
  [
    /^tools\//,
    ['test/start/{npm-test,demo-advance}.test.ts', 'test/faults/operations/start-errors.test.ts'],
    ['test/start/readme.test.ts', 'test/faults/operations/embedded.test.ts'],
  ],
  [
    /^/,
    ['test/start/{ci,env-file}.test.ts'],
    ['test/start/*.test.ts', 'test/faults/operations/several-instances.test.ts'],
  ],
]

/** All tests of these folders, for a mutant of `src` or of a migration that the tests of its area do not kill. */
const REST = ['test/{http,import,json,limits,lists,operator,postgres,security,telemetry}/*.test.ts']

export function testsOf(file: string): string[][] {
  const [, ...groups] = AREAS.find(([pattern]) => pattern.test(file)) ?? [/^/]
  return /^(src|migrations)\//.test(file) ? [...groups, REST] : groups
}

/**
 * Files that the sample draws from. Left out: tests, benchmarks, checks of style, and files of services that no test
 * can start (workflows, Grafana). docs/citus.sql needs Citus.
 */
export const FILES = [
  ...['src/**/*.ts', 'migrations/*.ts', 'seeds/*.ts', 'tools/*.ts', 'tools/embedded-postgres/*.ts'],
  ...['clients/*/src/**/*.{ts,py}', 'clients/*/examples/*', 'examples/*.{ts,py}'],
  ...[
    'docker-compose.yml',
    'demo.env',
    'observability/{alerts,prometheus}.yml',
    'docs/partitions.sql',
  ],
  ...['deploy/*/*', '.ci/run'],
]
