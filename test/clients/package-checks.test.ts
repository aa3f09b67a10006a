/** Checks that a registry and its users make of the packages: publint, are-the-types-wrong, build and twine. */
import { cp, readdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import t from 'tap'
import { installPackages } from '../../tools/install.ts'
import { needsProgram, run } from '../support/programs.ts'

await needsProgram(t, 'pyproject-build', 'python3-build python3-setuptools python3-wheel')
await needsProgram(t, 'twine', 'twine')

const checks = 'test/clients'

t.test('TypeScript: publint and are-the-types-wrong have no remark on the package', async (t) => {
  installPackages(checks)
  const folder = t.testdir({})
  for (const file of ['package.json', 'README.md', 'CHANGELOG.md'])
    await cp(join('clients/typescript', file), join(folder, file))
  await run('node_modules/.bin/tsc', ['-p', 'clients/typescript', '--outDir', `${folder}/dist`])
  await run('npm', ['pack', '--ignore-scripts'], { cwd: folder })
  const [file = ''] = (await readdir(folder)).filter((name) => name.endsWith('.tgz'))
  const program = (name: string) => resolve(checks, 'node_modules/.bin', name)
  const linted = await run(program('publint'), [file, '--strict'], { cwd: folder })
  t.match(linted, /All good!/)
  // It is an ES module, as README.md says.
  const types = await run(program('attw'), [file, '--profile', 'esm-only'], { cwd: folder })
  t.match(types, /node16 .from ESM. │ 🟢/)
})

t.test('Python: the package can be built, and twine has no remark on it', async (t) => {
  const folder = t.testdir({})
  // The build writes into the folder of its source.
  await cp('clients/python', join(folder, 'source'), { recursive: true })
  const built = join(folder, 'built')
  await run('pyproject-build', ['--no-isolation', '--outdir', built, join(folder, 'source')])
  const files = (await readdir(built)).sort()
  t.match(files, [/\.tar\.gz$/, /\.whl$/])
  const paths = files.map((name) => join(built, name))
  const checked = await run('twine', ['--no-color', 'check', '--strict', ...paths])
  t.equal(checked.match(/: PASSED/g)?.length, 2, checked)
  const [wheel] = paths.filter((path) => path.endsWith('.whl'))
  const program = 'import investment_data; print(investment_data.__version__)'
  const printed = await run('python3', ['-c', program], { env: { PYTHONPATH: wheel } })
  t.match(wheel, `investment_data_client-${printed.trim()}-`)
})
