/**
 * The direction of imports: server → app → routes → plugins → queries → database, with the schemas as a
 * leaf that all may read. A layer is a folder, and `may` names the folders that it may import.
 */
const layer = (name, from, ...may) => ({
  name,
  severity: 'error',
  comment: `src/${name} imports only from: ${may.join(', ')}`,
  from: { path: from },
  to: { path: '^(src|test|bench|seeds|migrations)/', pathNot: [from, ...may] },
})

const schemas = '^src/schemas/'
const database = '^src/database/'
const queries = '^src/queries/'
const config = '^src/config[-a-z]*[.]ts$'
const development = '^src/development/'
const operator = '^src/operator/'
const seeds = '^seeds/'

module.exports = {
  forbidden: [
    { name: 'no-circles', severity: 'error', from: {}, to: { circular: true } },
    { name: 'no-unresolved', severity: 'error', from: {}, to: { couldNotResolve: true } },
    {
      name: 'no-undeclared-package',
      severity: 'error',
      from: { path: '^src/', pathNot: development },
      to: {
        dependencyTypes: ['npm-no-pkg', 'npm-unknown', 'npm-dev'],
        dependencyTypesNot: ['type-only'],
      },
    },
    layer('schemas', schemas),
    {
      name: 'schemas-import-typebox-only',
      severity: 'error',
      from: { path: schemas },
      to: { pathNot: [schemas, '^node_modules/@sinclair/typebox/'] },
    },
    layer('config', config, schemas),
    layer('database', database, schemas),
    layer('queries', queries, database, schemas),
    {
      name: 'queries-know-no-http',
      severity: 'error',
      from: { path: [queries, database] },
      to: { path: '^node_modules/(@fastify/|fastify/)' },
    },
    layer('routes', '^src/routes/', '^src/plugins/', queries, database, schemas),
    layer('plugins', '^src/plugins/', queries, database, schemas, config),
    layer('app', '^src/app[.]ts$', '^src/(routes|plugins)/', queries, database, schemas, config),
    layer('operator', operator, database, schemas, config, development, seeds),
    layer('development', development, database, schemas, operator, seeds),
    layer('seeds', seeds, '^src/', '^migrations/'),
    {
      name: 'development-only-on-demand',
      severity: 'error',
      comment:
        'It is not in the production image: only the two entries reach it, by dynamic import.',
      from: { path: '^src/', pathNot: development },
      to: { path: development, dependencyTypesNot: ['dynamic-import', 'type-only'] },
    },
    {
      name: 'development-from-the-entries',
      severity: 'error',
      from: {
        path: '^src/',
        pathNot: [development, '^src/server[.]ts$', '^src/operator/main[.]ts$'],
      },
      to: { path: development },
    },
    {
      name: 'service-without-operator',
      severity: 'error',
      from: { path: '^src/', pathNot: [operator, development] },
      to: { path: operator },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default', 'types'],
    },
  },
}
