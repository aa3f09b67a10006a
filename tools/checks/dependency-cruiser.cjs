/**
 * The direction of imports: service → app → routes → queries → postgres, with http and telemetry beside
 * routes, and schemas as a leaf. A layer is a folder, and `may` names the folders that it may import.
 */
const layer = (name, from, ...may) => ({
  name,
  severity: 'error',
  comment: `${name} imports only from: ${may.join(', ')}`,
  from: { path: from },
  to: { path: '^(src|tools|test|bench|seeds|migrations|clients)/', pathNot: [from, ...may] },
})

const schemas = '^src/schemas/'
const postgres = '^src/postgres/'
const migrations = '^migrations/'
const limits = '^src/limits/'
const facts = '^src/request-facts[.]ts$'
const wire = '^src/postgres/wire/'
const json = '^src/json/'
const queries = '^src/queries/'
const http = '^src/http/'
const telemetry = '^src/telemetry/'
const config = '^src/(config|env-file|secrets)[.]ts$'
const operatorError = '^src/operator-error[.]ts$'
const errorMessage = '^src/error-message[.]ts$'
const shutdown = '^src/shutdown[.]ts$'
const operator = '^src/operator/'
const embedded = '^tools/embedded-postgres/'
const seeds = '^seeds/'
const clients = '^clients/'

module.exports = {
  forbidden: [
    { name: 'no-circles', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'no-unresolved',
      severity: 'error',
      // The compared servers of the bench have their own package.json, installed when it runs.
      from: { pathNot: '^bench/compared-servers/' },
      to: { couldNotResolve: true },
    },
    {
      name: 'no-undeclared-package',
      severity: 'error',
      from: { path: '^src/' },
      to: {
        dependencyTypes: ['npm-no-pkg', 'npm-unknown', 'npm-dev'],
        dependencyTypesNot: ['type-only'],
      },
    },
    layer('schemas', schemas),
    {
      // Of Node.js, they use the names of statuses.
      name: 'schemas-import-typebox-only',
      severity: 'error',
      from: { path: schemas },
      to: { pathNot: [schemas, '^node_modules/@sinclair/typebox/', '^http$'] },
    },
    layer('operator-error', operatorError),
    layer('error-message', errorMessage),
    layer('config', config, config, operatorError, '^src/postgres/server-urls[.]ts$', schemas),
    layer('limits', limits, schemas),
    layer('facts', facts, limits, schemas),
    layer('migrations', migrations),
    layer('postgres', postgres, errorMessage, facts, limits, schemas, migrations),
    layer('json', json, wire, limits, schemas),
    layer('queries', queries, limits, postgres, schemas),
    {
      name: 'migrations-where-they-run',
      severity: 'error',
      comment:
        'Readiness and commands compare their names. Types of the tables: src/postgres/tables.ts.',
      from: {
        path: '^src/',
        pathNot: '^src/(postgres/readiness|operator/(database|migrate))[.]ts$',
      },
      to: { path: migrations },
    },
    {
      name: 'only-json-and-postgres-know-the-wire',
      severity: 'error',
      comment: 'See "Rows as bytes" in docs/architecture.md.',
      from: { path: '^(src|tools|seeds|migrations|bench)/', pathNot: [postgres, json] },
      // safe-client.ts is the class of every client that sends a password.
      to: { path: wire, pathNot: '^src/postgres/wire/safe-client[.]ts$' },
    },
    {
      name: 'wire-and-json-know-no-request',
      severity: 'error',
      comment: 'They get a memory account and, for the order of writing, a tenant.',
      from: { path: [wire, json] },
      to: {
        path: [facts, '^src/limits/(admission|limits)[.]ts$', '^src/postgres/reader[.]ts$'],
      },
    },
    {
      name: 'queries-know-no-http',
      severity: 'error',
      from: { path: [queries, json, postgres, limits] },
      to: { path: ['^node_modules/(@fastify/|fastify/)', '^(node:)?https?$'] },
    },
    layer('routes', '^src/routes/', http, json, queries, limits, postgres, schemas),
    layer('http', http, errorMessage, json, queries, facts, limits, postgres, schemas, config),
    layer('telemetry', telemetry, http, facts, limits, postgres, schemas, config, operatorError),
    layer(
      'app',
      '^src/app[.]ts$',
      '^src/routes/',
      http,
      telemetry,
      queries,
      limits,
      postgres,
      schemas,
      config,
    ),
    layer('shutdown', shutdown, config),
    layer('server', '^src/server[.](js|ts)$', '^src/service[.]ts$', operatorError),
    layer(
      'service',
      '^src/service[.]ts$',
      '^src/app[.]ts$',
      shutdown,
      http,
      limits,
      postgres,
      config,
      operatorError,
      embedded,
      '^tools/readable-log[.]ts$',
    ),
    layer(
      'operator',
      operator,
      operatorError,
      errorMessage,
      postgres,
      migrations,
      schemas,
      config,
      embedded,
      seeds,
    ),
    layer('embedded', embedded, operatorError, postgres, migrations, schemas, operator, seeds),
    layer('clients', clients),
    layer('seeds', seeds, '^src/', migrations),
    {
      name: 'embedded-only-on-demand',
      severity: 'error',
      comment:
        'It is not in the production image: only the service and the CLI import it, dynamically.',
      from: { path: '^src/' },
      to: { path: embedded, dependencyTypesNot: ['dynamic-import', 'type-only'] },
    },
    {
      name: 'embedded-from-two-modules',
      severity: 'error',
      from: {
        path: '^src/',
        pathNot: ['^src/service[.]ts$', '^src/operator/main[.]ts$'],
      },
      to: { path: embedded },
    },
    {
      name: 'service-without-operator',
      severity: 'error',
      from: { path: '^src/', pathNot: operator },
      to: { path: operator },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    // npm pack in this folder builds the package there.
    exclude: { path: '^clients/(mcp|typescript)/dist/' },
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default', 'types'],
    },
  },
}
