/**
 * Writes the document of this version, which later versions must not break: `npm run docs:release`. It refuses a commit
 * without a run of all tests with all of their random input, because a change runs a tenth of it.
 */
import { execFileSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import packageJson from '../../package.json' with { type: 'json' }
import { committedContract, RELEASES } from './releases.ts'

const commit = execFileSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8' })
const tested = await readFile('node_modules/.cache/full-run', 'utf8').catch(() => '')
if (tested !== commit) {
  process.stderr.write(
    'This commit has no full run of the tests. Run `TEST_RUNS=1 .ci/run` first.\n',
  )
  process.exit(1)
}
const file = new URL(`openapi-${packageJson.version}.json`, RELEASES)
await writeFile(file, `${JSON.stringify(await committedContract())}\n`)
