/** Follows docs/sandbox.md with the sample data. */
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import t from 'tap'
import { installPackages } from '../../tools/install.ts'
import { needsProgram } from '../support/programs.ts'
import { startSeededService } from '../support/seeded-service.ts'
import { followTutorial } from '../support/tutorial.ts'

await needsProgram(t, 'curl', 'curl')
installPackages('test/clients')

t.test('sandbox.md: DuckDB has the expected sums, and shows what it rounds', async (t) => {
  const service = await startSeededService(t)
  const folder = await mkdtemp(join(tmpdir(), 'analysis-'))
  const programs = await mkdtemp(join(tmpdir(), 'analysis-programs-'))
  t.teardown(async () => {
    for (const each of [folder, programs, `${folder}.terminal-1`])
      await rm(each, { recursive: true, force: true })
  })
  const duckdb = join(programs, 'duckdb')
  await writeFile(
    duckdb,
    `#!/bin/sh\nexec '${process.execPath}' '${import.meta.dirname}/duckdb.ts'\n`,
  )
  await chmod(duckdb, 0o755)
  // No language: the program for pandas is not run, because the tests do not install pandas.
  const printed = await followTutorial(t, {
    page: 'docs/sandbox.md',
    folder,
    environment: {
      PATH: [programs, dirname(process.execPath), process.env.PATH].join(':'),
      NODE_OPTIONS: '--disable-warning=ExperimentalWarning',
    },
    instead: {},
    fillIn: (text) => text.replaceAll('http://127.0.0.1:3000', service.url),
  })
  const expected = JSON.parse(await readFile('seeds/expected.json', 'utf8'))
  const { dividendsGross, withheldTax, dividendsNet } = expected.DEMOSMALL1[0].years['2024']
  const zeros = '0'.repeat(10)
  t.match(printed.get('DuckDB'), `\n2024,EUR,${dividendsGross}${zeros},${withheldTax}${zeros}\n`)
  t.match(printed.get('DuckDB'), `\n2024,EUR,DIVIDENDS,${dividendsNet}${zeros}\n`)
})
