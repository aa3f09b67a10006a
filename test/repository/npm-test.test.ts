import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { openClient } from '../support/database.ts'
import { until } from '../support/until.ts'

const root = join(import.meta.dirname, '../..')
const { TEST_SERVER_URL: server = '', TEST_TEMPLATE: _, ...environment } = process.env

/** Starts `npm test -- …` without npm. */
function start(args: string[], env: Record<string, string> = {}): ChildProcess {
  return spawn(process.execPath, ['test/run.ts', ...args], {
    cwd: root,
    env: { ...environment, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 300_000,
  })
}

async function ended(child: ChildProcess) {
  const { stdout, stderr } = child
  if (!stdout || !stderr) throw new Error('no pipes')
  const exit = once(child, 'close')
  const output = { stdout: await text(stdout), stderr: await text(stderr) }
  await exit
  return { code: child.exitCode, ...output }
}

const run = (args: string[], env?: Record<string, string>) => ended(start(args, env))

// In the project, because the files import tap.
await mkdir(join(root, '.tap'), { recursive: true })
const folder = await mkdtemp(join(root, '.tap/npm-test-'))
t.teardown(() => rm(folder, { recursive: true }))

/** Writes a test file. Returns its path. */
async function fileOf(name: string, code: string): Promise<string> {
  await writeFile(join(folder, name), `import t from 'tap'\n${code}`)
  return relative(root, join(folder, name))
}

t.test('run that cannot start: one sentence and exit code 1', async (t) => {
  const pages = ['test/lists/pages.test.ts']
  const client = await openClient(t, server)
  const role = `plain_${randomBytes(6).toString('hex')}`
  await client.query(`create role ${role} login password 'plain'`)
  t.teardown(() => client.query(`drop role ${role}`))
  const serverWith = (parts: Partial<URL>) => Object.assign(new URL(server), parts).href
  const urls: [string, RegExp][] = [
    ['foo', /^TEST_DATABASE_URL must be a URL like postgres:/],
    ['postgres://127.0.0.1:1/none', /^TEST_DATABASE_URL cannot be used: connect ECONNREFUSED/],
    [serverWith({ pathname: '/none' }), /^TEST_DATABASE_URL cannot .*"none" does not exist/],
    [
      serverWith({ username: role, password: 'plain' }),
      /^TEST_DATABASE_URL has .* a superuser\.$/m,
    ],
  ]
  const cases: [string[], Record<string, string>, RegExp][] = [
    [['test/paes.test.ts'], {}, /^There is no test file test\/paes.*closest is test\/lists\/pages/],
    [[...pages, 'test/zzzzzz/'], {}, /^There is no test file test\/zzzzzz\/\.\n$/],
    [pages, { TEST_POSTGRES: 'contaner' }, /^TEST_POSTGRES must be embedded, container or citus/],
    [pages, { TEST_POSTGRES: 'citus', TEST_CITUS: '/none' }, /^TEST_CITUS must be the folder/],
    ...urls.map(([url, sentence]): [string[], Record<string, string>, RegExp] => [
      pages,
      { TEST_DATABASE_URL: url },
      sentence,
    ]),
    [
      pages,
      { TEST_POSTGRES: 'container', DOCKER_HOST: 'tcp://127.0.0.1:1', HOME: folder },
      /^TEST_POSTGRES=container needs Docker and postgres:\d+: Could not find/,
    ],
  ]
  for (const [names, env, sentence] of cases) {
    const { code, stdout, stderr } = await run(names, { TEST_DATABASE_URL: '', ...env })
    t.match(stderr, sentence)
    t.equal(stderr.split('\n').length, 2, stderr)
    t.same({ code, stdout }, { code: 1, stdout: '' })
  }
})

t.test('files that pass, fail, assert nothing or crash: counted, with the failures', async (t) => {
  const started = JSON.stringify(join(folder, 'f-started'))
  const codes = {
    'a-last': `
      import { existsSync } from 'node:fs'
      while (!existsSync(${started})) await new Promise((resolve) => setTimeout(resolve, 20))
      t.pass()`,
    'b-fails': `
      t.test('all pass', async (t) => t.pass('first'))
      t.test('one fails', async (t) => {
        t.pass('second')
        t.equal(1, 2, 'third')
      })`,
    'c-empty': '',
    'd-crashes': `
      t.pass()
      process.on('exit', () => process.exit(3))`,
    'e-rejects': `
      t.test('passes', async (t) => t.pass('fourth'))
      t.test('rejects', async () => {
        Promise.reject(new Error('that nothing catches'))
        await new Promise((resolve) => setTimeout(resolve, 100))
      })`,
    'f-passes': `
      import { writeFileSync } from 'node:fs'
      writeFileSync(${started}, '')
      t.pass()`,
  }
  const files: string[] = []
  for (const [name, code] of Object.entries(codes)) files.push(await fileOf(`${name}.ts`, code))
  const { code, stdout } = await run(files, { TEST_DATABASE_URL: server })
  t.equal(code, 1)
  const line = /^((?:not )?ok) (\d) of 6: \S+\/(\S+)\.ts \(\d+\.\d s\)$/gm
  const results = [...stdout.matchAll(line)]
  t.same(
    results.map(([, , number]) => number),
    ['1', '2', '3', '4', '5', '6'],
  )
  const named = results.map(([, result, , name]) => `${result} ${name}`)
  t.not(named[0], 'ok a-last', 'printed when a file ends')
  t.same(named.sort(), [
    'not ok b-fails',
    'not ok c-empty',
    'not ok e-rejects',
    'ok a-last',
    'ok d-crashes',
    'ok f-passes',
  ])
  t.match(stdout, /# Subtest: one fails\n +not ok 2 - third\n/)
  t.notMatch(stdout, /- first|- second|# Subtest: all pass/)
  t.match(stdout, /# Subtest: rejects\n.*\n *Error: that nothing catches\n/s)
  t.match(stdout, /This file asserts nothing/)
  t.match(stdout, /\na process ended with exit code 3; its files: .*d-crashes\.ts.*\nnot ok\n/)
  t.match(
    stdout,
    /\nSlowest: (\S+\.ts \(\d+\.\d s\)(, |\n)){5}The random input had TEST_SEED=1 .*\n5 passed, 4 failed\n$/,
  )
})

t.test(
  'test:clients without its programs: the names of all, and the line that installs them',
  async (t) => {
    const child = spawn(process.execPath, ['test/suite.ts', 'clients'], {
      cwd: root,
      env: { PATH: folder, CHROMIUM_PATH: '/none' },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const { code, stdout, stderr } = await ended(child)
    t.equal(code, 1)
    t.match(stdout, /^test:clients needs bash, .*java, Chromium or Chrome .*\n$/)
    t.match(stderr, /Missing: bash, .*Chromium or Chrome .* To install: \.ci\/packages clients\n$/)
  },
)

t.test('TEST_RUNS=1: each file has a new process', async (t) => {
  const code = `t.equal(globalThis.earlier, undefined); globalThis.earlier = true`
  // One more than the processes that run at the same time.
  const files = await Promise.all([1, 2, 3, 4, 5, 6].map((n) => fileOf(`new-${n}.ts`, code)))
  const { code: exitCode, stdout } = await run(files, {
    TEST_DATABASE_URL: server,
    TEST_RUNS: '1',
  })
  t.equal(exitCode, 0)
  t.match(stdout, /^6 passed, 0 failed$/m)
})

t.test('packages of a folder: installed once for each package-lock.json', async (t) => {
  const lock = (version: string) =>
    JSON.stringify({
      lockfileVersion: 3,
      packages: {
        '': { dependencies: { other: 'file:other' } },
        'node_modules/other': { resolved: 'other', link: true },
        other: { version },
      },
    })
  const folder = t.testdir({
    'package.json': '{"dependencies":{"other":"file:other"}}',
    'package-lock.json': lock('1.0.0'),
    other: { 'package.json': '{"name":"other","version":"1.0.0"}' },
  })
  const install = () => {
    const args = ['tools/install.ts', folder]
    const { status, stderr } = spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8' })
    t.equal(status, 0, stderr)
    return /^Installs the packages of /m.test(stderr)
  }
  t.equal(install(), true)
  t.equal(install(), false)
  await writeFile(join(folder, 'package-lock.json'), lock('1.0.1'))
  await writeFile(join(folder, 'other/package.json'), '{"name":"other","version":"1.0.1"}')
  t.equal(install(), true)
})

t.test('Ctrl-C: the files end, the template is dropped, exit code 130', async (t) => {
  const started = join(folder, 'endless-started')
  const endless = await fileOf(
    'endless.ts',
    `import { writeFileSync } from 'node:fs'
    writeFileSync(${JSON.stringify(started)}, process.env.TEST_TEMPLATE)
    setInterval(() => {}, 1000)
    t.test('never ends', () => new Promise(() => {}))`,
  )
  const child = start([endless], { TEST_DATABASE_URL: server })
  const end = ended(child)
  const template = () => readFile(started, 'utf8').catch(() => '')
  await until('the file has started', async () => (await template()) !== '')
  const client = await openClient(t, server)
  const templates = async () => {
    const named = 'select from pg_database where datname = $1'
    return (await client.query(named, [await template()])).rowCount
  }
  t.equal(await templates(), 1)
  child.kill('SIGINT')
  // npm sends the signal again.
  child.kill('SIGINT')
  const { code, stdout } = await end
  t.equal(code, 130)
  t.match(stdout, /Interrupted after 0 of 1 files\.\n\d passed, \d failed\n$/)
  t.equal(await templates(), 0)
})

t.test('new checkout with a file of src that throws: the run ends with its error', async (t) => {
  const checkout = join(folder, 'checkout')
  for (const name of ['src', 'test', 'tools', 'migrations', 'seeds', 'docs', 'package.json'])
    await cp(join(root, name), join(checkout, name), {
      recursive: true,
      filter: (path) => !path.includes('/node_modules'),
    })
  // Without the folder .cache, in which an earlier run has compiled the files.
  await mkdir(join(checkout, 'node_modules'))
  for (const name of await readdir(join(root, 'node_modules')))
    if (!['.cache', '.bin'].includes(name))
      await symlink(join(root, 'node_modules', name), join(checkout, 'node_modules', name))
  const broken = join(checkout, 'src/schemas/list.ts')
  await writeFile(broken, `throw new Error('broken')\n${await readFile(broken, 'utf8')}`)
  const child = spawn(process.execPath, ['test/run.ts', 'test/lists/pages.test.ts'], {
    cwd: checkout,
    env: { ...environment, TEST_DATABASE_URL: '' },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 300_000,
  })
  const { code, stdout, stderr } = await ended(child)
  t.equal(code, 1)
  t.match(stdout + stderr, /not ok 1 - broken\n/)
})
