import { cp, mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import type {
  AccountTransaction,
  AssetsTransferOrder,
  Decimal,
  PortfolioTransaction,
  ProblemError,
} from '../../clients/typescript/src/index.ts'
import type { components } from '../../docs/reference/openapi.ts'
import { pythonEnvironment } from '../support/clients/drivers.ts'
import { needsProgram, run } from '../support/programs.ts'
import { startSeededService } from '../support/seeded-service.ts'
import { readmeExamples } from './readme-examples.ts'

await needsProgram(t, 'python3', 'python3')
await needsProgram(t, 'mypy', 'mypy')

const ROOT = join(import.meta.dirname, '../..')
const TSC = join(ROOT, 'node_modules/.bin/tsc')
const typescript = join(ROOT, 'clients/typescript')
const python = join(ROOT, 'clients/python')

const service = await startSeededService(t)
const examples = {
  typescript: await readmeExamples('typescript', service.url),
  python: await readmeExamples('python', service.url),
}

/** Replaces decimals as text by numbers, as in the default media type of the document. */
type AsNumbers<T> = T extends Decimal
  ? number
  : T extends object
    ? { [Name in keyof T]: AsNumbers<T[Name]> }
    : T
type IsSame<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false
type Schemas = components['schemas']

t.test('TypeScript: the types are those of docs/reference/openapi.json', async (t) => {
  const portfolio: IsSame<AsNumbers<PortfolioTransaction>, Schemas['PortfolioTransaction']> = true
  const account: IsSame<AsNumbers<AccountTransaction>, Schemas['AccountTransaction']> = true
  const order: IsSame<AsNumbers<AssetsTransferOrder>, Schemas['AssetsTransferOrder']> = true
  const code: IsSame<ProblemError['code'], Schemas['Problem']['code']> = true
  t.ok(portfolio && account && order && code, 'checked by npm run check:types')
})

/** Prints the fields of each type: `decimal`, or the values of a closed list; `null` if optional. */
const PRINT_TYPES = `
import json, typing
from decimal import Decimal
import investment_data as module
def describe(hint):
    args = typing.get_args(hint)
    if type(None) in args:
        return [*describe(args[0]), "null"]
    if typing.get_origin(hint) is typing.Literal:
        return sorted(args)
    return ["decimal"] if hint is Decimal else [] if hint in (str, bool) else [hint.__name__]
print(json.dumps({
    name: {field: describe(hint) for field, hint in typing.get_type_hints(getattr(module, name)).items()}
    for name in ("PortfolioTransaction", "AccountTransaction", "AssetsTransferOrder", "RetentionDetail", "Company")
}))
`

interface Schema {
  type?: string | string[]
  format?: string
  enum?: string[]
  $ref?: string
  anyOf?: Schema[]
  properties?: Record<string, Schema>
}

t.test('Python: the types are those of docs/reference/openapi.json', async (t) => {
  const printed = JSON.parse(await run('python3', ['-c', PRINT_TYPES], { env: pythonEnvironment }))
  const document = JSON.parse(await readFile(join(ROOT, 'docs/reference/openapi.json'), 'utf8'))
  const schemas: Record<string, Schema> = document.components.schemas
  const describe = (schema: Schema): string[] => {
    const { $ref, anyOf, type = [], format } = schema
    if (anyOf) return anyOf.flatMap(describe)
    const name = String($ref).split('/').at(-1) ?? ''
    const target = schemas[name]
    if ($ref && target) return target.properties ? [name] : describe(target)
    const nullable = [type].flat().includes('null') ? ['null'] : []
    if (schema.enum) return [...schema.enum.toSorted(), ...nullable]
    return [...(format === 'decimal' ? ['decimal'] : []), ...nullable]
  }
  for (const [name, fields] of Object.entries(printed)) {
    const wanted = Object.entries(schemas[name]?.properties ?? {}).map(([field, schema]) => {
      return [field, describe(schema)]
    })
    t.strictSame(Object.entries(fields as object), wanted, name)
  }
})

t.test(
  'TypeScript: the package works after its build; README.md prints what it says',
  async (t) => {
    const folder = t.testdir({ 'package.json': '{ "type": "module" }' })
    const installed = join(folder, 'node_modules/@investment-data/client')
    await mkdir(installed, { recursive: true })
    for (const file of ['package.json', 'README.md', 'CHANGELOG.md'])
      await cp(join(typescript, file), join(installed, file))
    await run(TSC, ['-p', typescript, '--outDir', join(installed, 'dist')])

    await mkdir(join(folder, 'node_modules/@types'))
    for (const name of ['@types/node', 'undici-types'])
      await symlink(join(ROOT, 'node_modules', name), join(folder, 'node_modules', name))
    for (const { file, source } of examples.typescript) await writeFile(join(folder, file), source)
    const strict = [
      '--ignoreConfig',
      '--strict',
      '--exactOptionalPropertyTypes',
      '--noUncheckedIndexedAccess',
      // Files of TypeScript, not of the package.
      '--skipDefaultLibCheck',
    ]
    const target = ['--noEmit', '--target', 'es2022', '--module', 'nodenext', '--types', 'node']
    const names = examples.typescript.map(({ file }) => file)
    await run(TSC, [...strict, ...target, ...names], { cwd: folder })

    const programs = ['list-rows', 'daily-copy', 'read-copy', 'own-tables', 'export-rows']
    t.strictSame(
      names,
      [...programs, 'show-errors'].map((name) => `${name}.ts`),
    )
    for (const { file, output } of examples.typescript) {
      const args = ['--disable-warning=ExperimentalWarning', file]
      t.equal(await run(process.execPath, args, { cwd: folder }), output, file)
    }
    for (const [file, output] of [
      ['daily-copy.ts', examples.typescript[1]?.output.replaceAll('true', 'false')],
      ['own-tables.ts', examples.typescript[3]?.output],
    ] as const) {
      const args = ['--disable-warning=ExperimentalWarning', file]
      t.equal(await run(process.execPath, args, { cwd: folder }), output, `${file}: a refresh`)
    }
  },
)

t.test('Python: mypy --strict accepts it; README.md prints what it says', async (t) => {
  const folder = t.testdir({})
  for (const { file, source } of examples.python) await writeFile(join(folder, file), source)
  const names = examples.python.map(({ file }) => file)
  const cache = [
    '--cache-dir',
    join(ROOT, 'node_modules/.cache/mypy'),
    '--config-file',
    join(python, 'pyproject.toml'),
  ]
  const sources = ['src/investment_data', 'examples/beancount_file.py'].map((path) =>
    join(python, path),
  )
  const env = { MYPYPATH: join(python, 'src') }
  await run('mypy', [...cache, '--strict', ...sources, ...names], { cwd: folder, env })

  const programs = ['list_rows', 'daily_copy', 'read_copy', 'own_tables', 'export_rows']
  const others = ['list_orders', 'show_errors']
  t.strictSame(
    names,
    [...programs, ...others].map((name) => `${name}.py`),
  )
  const options = { cwd: folder, env: pythonEnvironment }
  for (const { file, output } of examples.python) {
    t.equal(await run('python3', [file], options), output, file)
  }
  for (const [file, output] of [
    ['daily_copy.py', examples.python[1]?.output.replaceAll('True', 'False')],
    ['own_tables.py', examples.python[3]?.output],
  ] as const)
    t.equal(await run('python3', [file], options), output, `${file}: a refresh`)
})

t.test('both packages: one version, no dependencies, the license of the project', async (t) => {
  const project = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'))
  const { name, version, dependencies, license } = JSON.parse(
    await readFile(join(typescript, 'package.json'), 'utf8'),
  )
  t.equal(name, '@investment-data/client')
  t.equal(dependencies, undefined)
  t.equal(license, project.license)
  const pyproject = await readFile(join(python, 'pyproject.toml'), 'utf8')
  t.match(pyproject, `version = "${version}"`)
  t.match(pyproject, 'dependencies = []')
  t.match(pyproject, `license = { text = "${license}" }`)
  for (const folder of [typescript, python]) {
    t.match(await readFile(join(folder, 'CHANGELOG.md'), 'utf8'), `## ${version}\n`)
  }
})
