/**
 * Runs the tests that need more than Node.js and npm: `npm run test:clients`, or several of them in one run. Prints
 * what the command needs, and ends at once if something is missing.
 */
import { spawn, spawnSync } from 'node:child_process'
import { accessSync, constants, existsSync, globSync } from 'node:fs'
import { join } from 'node:path'
import { installPackages } from '../tools/install.ts'
import { isNightly, NIGHTLY } from './nightly.ts'

interface Suite {
  files: string[]
  /** Further files, each night and before a release. */
  nightly?: string[]
  /** Programs in PATH and in the folders of Debian's servers. */
  programs: string[]
  /** Other needs: a name, and if it is there. */
  others?: Record<string, () => boolean>
  /** Installs what is missing. */
  install: string
  /** Note on time or network. */
  note: string
  environment?: Record<string, string>
  /** Folder with packages of its own. Its files run at the same time, so they cannot install them themselves. */
  packages?: string
}

const { env } = process
const FOLDERS = [
  ...String(env.PATH).split(':'),
  ...['/usr/sbin', '/sbin', '/usr/lib/postgresql/15/bin'],
]

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

const isProgram = (name: string) => FOLDERS.some((folder) => isExecutable(join(folder, name)))
const browsers = ['chromium-headless-shell', 'chromium', 'google-chrome', 'google-chrome-stable']
const hasBrowser = () =>
  env.CHROMIUM_PATH ? isExecutable(env.CHROMIUM_PATH) : browsers.some(isProgram)
const runs = (command: string, ...args: string[]) => spawnSync(command, args).status === 0
const hasModule = (name: string) => () => runs('/usr/bin/python3', '-c', `import ${name}`)

/** Programs of util-linux and of the shell, which each Linux distribution has. */
const LINUX = ['bash', 'script', 'setpriv', 'prlimit']

const SUITES: Record<string, Suite> = {
  repository: {
    files: ['test/repository/*.test.ts'],
    programs: ['bash', 'curl'],
    install: '.ci/packages curl',
    note: 'one minute; the first run installs tools/checks from the registry',
  },
  clients: {
    files: ['test/clients/{,browser/}*.test.ts', 'test/typescript-client/*.test.ts'],
    programs: [
      ...['bash', 'curl', 'openssl', 'python3', 'mypy', 'bean-check', 'pyproject-build', 'twine'],
      ...['java'],
    ],
    others: {
      'Chromium or Chrome (CHROMIUM_PATH)': hasBrowser,
      'psycopg and psycopg_pool': hasModule('psycopg_pool'),
      'setuptools and wheel': hasModule('setuptools, wheel'),
      Jackson: () => existsSync('/usr/share/java/jackson-databind.jar'),
    },
    install: '.ci/packages clients',
    note: 'three minutes; the first run installs test/clients from the registry',
    environment: { CLIENTS: 'all' },
    packages: 'test/clients',
  },
  load: {
    files: ['test/load/*.test.ts'],
    programs: LINUX,
    install: '.ci/packages util-linux bsdutils',
    note: 'Linux; four minutes',
  },
  servers: {
    files: ['test/servers/!(citus).test.ts'],
    programs: [
      ...LINUX,
      ...[
        'curl',
        'jq',
        'openssl',
        'python3',
        'postgres',
        'psql',
        'pg_repack',
        'pgbouncer',
        'haproxy',
        'nginx',
      ],
      ...['redis-server', 'prometheus', 'promtool', 'systemd-analyze', 'unshare', 'ip'],
    ],
    others: { 'psycopg and psycopg_pool': hasModule('psycopg_pool') },
    install: '.ci/packages servers',
    note: 'Linux; four minutes',
    environment: { CLIENTS: 'all' },
  },
  partitioned: {
    // What writes or reads rows of the partitioned tables, or compares their schema. Other tests use few rows of them, and
    // the workflow runs all tests on partitions.
    files: [
      'test/lists/{pages,order,export,change-feed,conditional-requests,history-model,model}.test.ts',
      'test/security/{isolation,row-level-security,least-privilege}.test.ts',
      'test/postgres/{change-numbers,lock-order,partitions,plans,row-counts}.test.ts',
      'test/import/{import,import-replace}.test.ts',
      'test/operator/operator-{deletion,migrate,schema,upgrade,verify}.test.ts',
      'test/operator/{refresh,refresh-model,writing}.test.ts',
    ],
    programs: [],
    install: '',
    note: 'one minute',
    // `npm test` runs the properties and models with all input that TEST_RUNS asks for.
    environment: { TEST_PARTITIONED: 'true', TEST_RUNS: '0.1' },
  },
  citus: {
    files: [
      'test/lists/{model,change-feed}.test.ts',
      'test/security/{isolation,row-level-security,least-privilege}.test.ts',
      'test/postgres/row-counts.test.ts',
      'test/import/import.test.ts',
      'test/operator/{operator-deletion,operator-verify,refresh-model}.test.ts',
      'test/servers/citus.test.ts',
    ],
    // The same statements as those of the files above, with other rows.
    nightly: [
      'test/lists/{conditional-requests,real-data,history-model}.test.ts',
      'test/import/{import-problems,import-replace}.test.ts',
      'test/operator/{operator,connections}.test.ts',
      'test/seeds/seeds.test.ts',
      'test/load/operator-interrupt.test.ts',
    ],
    programs: LINUX,
    others: {
      'TEST_CITUS: the folder of the programs of a PostgreSQL with Citus': () =>
        isExecutable(join(String(env.TEST_CITUS), 'postgres')),
    },
    install: 'test/README.md (TEST_CITUS)',
    note: 'Linux; one minute',
    environment: { TEST_POSTGRES: 'citus' },
  },
}

const names = process.argv.slice(2)
if (names.length === 0) throw new Error('which tests? test/README.md has their names')
const suites = names.map((name) => {
  const suite = SUITES[name]
  if (suite === undefined) throw new Error(`no such tests: ${name}`)
  return suite
})
const programs = [...new Set(suites.flatMap((suite) => suite.programs))]
const others = suites.flatMap((suite) => Object.entries(suite.others ?? {}))
const missing = [
  ...programs.filter((program) => !isProgram(program)),
  ...others.filter(([, isThere]) => !isThere()).map(([each]) => each),
]
for (const [index, suite] of suites.entries()) {
  const needs = [...suite.programs, ...Object.keys(suite.others ?? {})]
  console.log(`test:${names[index]} needs ${needs.join(', ') || 'nothing'} (${suite.note}).`)
}
if (missing.length > 0) {
  const install = suites.map((suite) => suite.install).join('; ')
  console.error(`Missing: ${missing.join(', ')}. To install: ${install}`)
  process.exitCode = 1
} else {
  for (const { packages } of suites) {
    if (packages !== undefined) installPackages(packages)
  }
  const run = join(import.meta.dirname, 'run.ts')
  const patterns = suites.flatMap((suite) => suite.files)
  const nightly = suites.flatMap((suite) => suite.nightly ?? [])
  const files = isNightly
    ? [...patterns, ...nightly]
    : globSync(patterns).filter((file) => NIGHTLY[file] === undefined)
  const environments = suites.map(({ environment }) => environment)
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', run, ...files], {
    stdio: 'inherit',
    env: Object.assign({}, env, ...environments),
  })
  // The terminal sends Ctrl-C to both. run.ts ends its files first.
  process.on('SIGINT', () => {})
  process.on('SIGTERM', () => child.kill())
  child.on('exit', (code) => {
    process.exitCode = code ?? 1
  })
}
