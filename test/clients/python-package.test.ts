/** Checks that a registry and its users make of the Python package: build and twine. */
import { cp, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { PYTHON } from '../support/clients/python.ts'
import { needsProgram, run } from '../support/programs.ts'
import { withLengths } from '../support/with-lengths.ts'

await needsProgram(t, 'pyproject-build', 'python3-build python3-setuptools python3-wheel')
await needsProgram(t, 'twine', 'twine')

t.test('the package can be built, and twine has no remark on it', async (t) => {
  const folder = t.testdir({})
  // The build writes into the folder of its source.
  await cp('clients/python', join(folder, 'source'), { recursive: true })
  const built = join(folder, 'built')
  await run('pyproject-build', ['--no-isolation', '--outdir', built, join(folder, 'source')])
  const files = (await readdir(built)).sort()
  t.match(files, withLengths([/\.tar\.gz$/, /\.whl$/]))
  const paths = files.map((name) => join(built, name))
  const checked = await run('twine', ['--no-color', 'check', '--strict', ...paths])
  t.equal(checked.match(/: PASSED/g)?.length, 2, checked)
  const [wheel] = paths.filter((path) => path.endsWith('.whl'))
  const program = 'import investment_data; print(investment_data.__version__)'
  const printed = await run(PYTHON, ['-c', program], { env: { PYTHONPATH: wheel } })
  t.match(wheel, `investment_data_client-${printed.trim()}-`)
})
