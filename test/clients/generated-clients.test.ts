/** Clients of hey-api and orval. test/openapi/document.test.ts has the one of openapi-typescript. */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { DEMO } from '../../seeds/sample-data.ts'
import { DOCUMENT } from '../../tools/docs/committed.ts'
import { installPackages } from '../../tools/install.ts'
import { DEMO_TOKEN, startSeededService } from '../support/seeded-service.ts'

const run = promisify(execFile)
const generators = resolve('test/clients')
const document = fileURLToPath(DOCUMENT)

const HEY_API = `
import { client } from './hey-api/client.gen.js'
import { listAccountTransactions, listAssetsTransferOrders } from './hey-api/index.js'
import type { AccountTransactionType, Company, Decimal } from './hey-api/index.js'

declare const process: { argv: [string, string, string, string, string] }
const [, , baseUrl, auth, token] = process.argv
client.setConfig({ baseUrl, auth })
const path = { token }
const { data } = await listAccountTransactions({ path, query: { from: '2024-07-01', limit: '2' } })
const rows: [AccountTransactionType, Decimal][] = data?.items.map((row) => [row.type, row.amount]) ?? []
const orders = await listAssetsTransferOrders({ path })
const company: Company | null | undefined = orders.data?.[1]?.marketer
const { error } = await listAssetsTransferOrders({ path: { token: 'unknown' } })
console.log(JSON.stringify([data?.totalItems, rows, company?.name, error?.code]))
`

const ORVAL = `
import { AccountTransactionType, listAccountTransactions, listAssetsTransferOrders } from './orval/client.js'
import type { Company, Decimal } from './orval/client.js'

declare const process: { argv: [string, string, string, string, string] }
const [, , baseUrl, auth, token] = process.argv
// The server of the committed document is relative.
const { fetch } = globalThis
globalThis.fetch = (path, init) => fetch(new URL(String(path), baseUrl), init)
const options = { headers: { authorization: 'Bearer ' + auth } }
const page = await listAccountTransactions(token, { from: '2024-07-01', limit: '2' }, options)
if (page.status !== 200) throw new Error(page.data?.code)
const rows: [AccountTransactionType, Decimal][] = page.data.items.map((row) => [row.type, row.amount])
const orders = await listAssetsTransferOrders(token, options)
const company: Company | null | undefined = orders.status === 200 ? orders.data[1]?.marketer : null
const unknown = await listAssetsTransferOrders('unknown', options)
console.log(JSON.stringify([
  page.data.totalItems, rows, company?.name, unknown.status === 404 && unknown.data.code,
]))
`

const compilerOptions = {
  // Saves the check of TypeScript's own declarations. The clients have no other ones.
  skipLibCheck: true,
  target: 'es2024',
  lib: ['es2024', 'dom', 'dom.iterable'],
  module: 'nodenext',
  types: [],
  outDir: 'compiled',
  strict: true,
  noUncheckedIndexedAccess: true,
  verbatimModuleSyntax: true,
}

const guide = await readFile('src/http/openapi/guide.md', 'utf8')

/** Setting in `output` that the guide gives to users of a generator. */
const settingOf = (generator: string) =>
  String(new RegExp(`^[|] ${generator} .*\`((?:header|override): .*?)\``, 'm').exec(guide)?.[1])

const HEY_API_SETTINGS = `export default {
  input: ${JSON.stringify(document)},
  output: { path: 'hey-api', ${settingOf('hey-api')} },
  logs: { file: false },
  plugins: ['@hey-api/client-fetch', '@hey-api/typescript', '@hey-api/sdk'],
}`

const ORVAL_SETTINGS = `export default {
  service: {
    input: ${JSON.stringify(document)},
    output: { target: 'orval/client.ts', client: 'fetch', ${settingOf('orval')} },
  },
}`

const service = await startSeededService(t)
const folder = await mkdtemp(join(tmpdir(), 'clients-'))
t.teardown(() => rm(folder, { recursive: true }))

/** Runs the program of a package with this Node.js. */
const inFolder = (program: string, ...args: string[]) =>
  run(process.execPath, [program, ...args], { cwd: folder })

/** Compiles the clients. Returns the errors. */
async function compile(...args: string[]): Promise<string[]> {
  const compiler = resolve('node_modules/typescript/bin/tsc')
  const { stdout } = await inFolder(compiler, '--pretty', 'false', ...args).catch((error) => error)
  return String(stdout)
    .split('\n')
    .filter((line) => /^\S/.test(line))
}

t.before(async () => {
  installPackages('test/clients')
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }')
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions }))
  await writeFile(join(folder, 'use-hey-api.ts'), HEY_API)
  await writeFile(join(folder, 'use-orval.ts'), ORVAL)
  const program = (name: string) => join(generators, 'node_modules/.bin', name)
  await writeFile(join(folder, 'hey-api.config.js'), HEY_API_SETTINGS)
  await inFolder(program('openapi-ts'), '--file', 'hey-api.config.js')
  await writeFile(join(folder, 'orval.config.js'), ORVAL_SETTINGS)
  const { stdout, stderr } = await inFolder(program('orval'), '--config', 'orval.config.js')
  t.notMatch(stdout + stderr, /error|warning|failed/i)
})

t.test('strict: the clients and their use compile', async (t) => {
  t.strictSame(await compile(), [])
})

t.test('exactOptionalPropertyTypes: the clients and their use compile', async (t) => {
  t.strictSame(await compile('--noEmit', '--exactOptionalPropertyTypes'), [])
})

t.test('hey-api: only its own library is exempt from type checks', async (t) => {
  const { stdout } = await run('grep', ['-rlF', '@ts-nocheck', 'hey-api'], { cwd: folder })
  const exempt = stdout.trim().split('\n')
  t.ok(exempt.length > 0)
  t.strictSame(
    exempt.filter((path) => !/^hey-api.(?:client|core)./.test(path)),
    [],
  )
})

for (const program of ['use-hey-api', 'use-orval']) {
  t.test(`${program}: reads the sample data`, async (t) => {
    const { token } = DEMO.wealth.connections.small
    const { stdout } = await inFolder(`compiled/${program}.js`, service.url, DEMO_TOKEN, token)
    t.strictSame(JSON.parse(stdout), [
      3,
      [
        ['UNKNOWN', -0.01],
        ['INTEREST', 1.284617],
      ],
      'Banco del Ebro, S.A.',
      'connection_not_found',
    ])
  })
}
