import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import { readConfig } from '../../src/config.ts'
import { shutdownMs } from '../../src/shutdown.ts'
import { NIGHTLY } from '../nightly.ts'

/** Runs .ci/run with these commands in place of .ci/packages and npm. Returns its last line and its status. */
function runCi(t: Test, commands: { packages?: string; npm: string; citus?: string }) {
  const folder = join(t.testdir(), 'project')
  mkdirSync(join(folder, '.ci'), { recursive: true })
  copyFileSync('.ci/run', join(folder, '.ci/run'))
  const script = (path: string, text: string) => {
    writeFileSync(join(folder, path), `#!/bin/sh\n${text}\n`)
    chmodSync(join(folder, path), 0o755)
  }
  script('.ci/packages', commands.packages ?? 'exit 0')
  script('npm', commands.npm)
  if (commands.citus !== undefined) {
    mkdirSync(join(folder, '../shared/tools'), { recursive: true })
    script('../shared/tools/citus', commands.citus)
  }
  const env = { ...process.env, PATH: `${folder}:${process.env.PATH}` }
  const { stdout, status } = spawnSync('bash', ['.ci/run'], { cwd: folder, env, encoding: 'utf8' })
  return [stdout.trimEnd().split('\n').at(-1), status]
}

t.test('.ci/run: the sum of all tests, and a failure of any command', (t) => {
  const npm = (last: string) => `case "$2" in
    test:repository) echo "1 passed, 0 failed" ;;
    test:partitioned) ${last} ;;
    test:system) echo "2 passed, 0 failed" ;;
    test:citus) [ "$TEST_CITUS" ] && echo "4 passed, 0 failed" ;;
  esac`
  const all = npm('echo "2 passed, 0 failed"')
  t.same(runCi(t, { npm: all }), ['5 passed, 0 failed', 0])
  t.same(runCi(t, { npm: npm('echo "2 passed, 1 failed"; exit 1') }), ['5 passed, 1 failed', 1])
  t.same(
    runCi(t, { npm: npm('exit 3') }),
    ['3 passed, 1 failed', 3],
    'a step without a failed test',
  )
  const packages = 'exit 4'
  t.same(runCi(t, { packages, npm: all }), ['0 passed, 1 failed', 4], 'no packages, no tests')
  const failedInstall = 'if [ "$1" = ci ]; then exit 5; fi'
  t.same(
    runCi(t, { npm: `${failedInstall}\n${all}` }),
    ['0 passed, 1 failed', 5],
    'no packages of npm, no tests',
  )
  t.same(runCi(t, { npm: all, citus: '[ "$1" = build ]' }), ['9 passed, 0 failed', 0])
  t.same(runCi(t, { npm: all, citus: 'exit 6' }), ['5 passed, 1 failed', 6], 'no build of Citus')
  t.end()
})

t.test('the files of the clients run once: in test:system, not in npm test', (t) => {
  const steps = readFileSync('.ci/run', 'utf8').match(/(?<=^step ).+$/gm)
  t.ok(steps?.includes('npm test'))
  t.ok(steps?.includes('npm run test:system'))
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8'))
  t.match(scripts['test:system'], / test\/suite\.ts clients load servers$/)
  const [foldersOfOthers] = readFileSync('test/run.ts', 'utf8').match(/^const OTHER = .+$/m) ?? []
  t.match(foldersOfOthers, "'clients', 'typescript-client'")
  const { jobs } = parse(readFileSync('.github/workflows/check.yml', 'utf8'))
  const { include } = jobs.tests.strategy.matrix
  const commands = include.map(({ command }: { command: string }) => command)
  t.ok(commands.includes('test') && commands.includes('test:clients'))
  t.end()
})

t.test('files that only run each night: others keep their promises for a change', (t) => {
  for (const [file, keepers] of Object.entries(NIGHTLY)) {
    t.ok(existsSync(file), file)
    for (const keeper of keepers.split(', ')) {
      const name = keeper === 'simulation' ? 'simulation/simulation' : keeper
      const path = `test/${name}.test.ts`
      t.ok(existsSync(path) && NIGHTLY[path] === undefined, `${file}: ${path}`)
    }
  }
  const { env } = parse(readFileSync('.github/workflows/check.yml', 'utf8'))
  t.match(env.TEST_RUNS, "github.event_name == 'schedule' && 1 ||")
  t.end()
})

t.test('docs:release: refuses a commit without a run of all random input', (t) => {
  const cwd = t.testdir()
  const script = join(import.meta.dirname, '../../tools/docs/release.ts')
  const release = () => spawnSync(process.execPath, [script], { cwd, encoding: 'utf8' })
  const refused = { status: 1, stderr: /Run `TEST_RUNS=1 .ci\/run` first/ }
  t.match(release(), refused)
  mkdirSync(join(cwd, 'node_modules/.cache'), { recursive: true })
  writeFileSync(join(cwd, 'node_modules/.cache/full-run'), `${'0'.repeat(40)}\n`)
  t.match(release(), refused, 'the run of another commit')
  t.end()
})

t.test('docker-compose.yml: the service has time to stop, memory and no rights', (t) => {
  const compose = parse(readFileSync('docker-compose.yml', 'utf8'), { merge: true })
  const { service, proxy } = compose.services
  const config = readConfig({})
  for (const { stop_grace_period: period } of [service, proxy])
    t.ok(Number.parseInt(period, 10) * 1_000 > shutdownMs(config), period)
  t.match(service.mem_limit, /:-1g\}$/)
  t.ok(1024 > 3 * config.ANSWER_MEMORY_MB, 'the process needs more memory besides the responses')
  for (const { read_only, cap_drop } of [service, proxy])
    t.same([read_only, cap_drop], [true, ['ALL']])
  t.end()
})
