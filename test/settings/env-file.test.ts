import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { readConfig } from '../../src/config.ts'
import { readSecretFiles } from '../../src/env-file.ts'
import { OperatorError } from '../../src/operator-error.ts'
import { createDatabase } from '../support/database.ts'
import { loginOfService, openAsOwner } from '../support/logins.ts'
import { until } from '../support/until.ts'

const { url } = await createDatabase(t)
const login = await loginOfService(t, openAsOwner(t, url), url)
const { PATH = '', HOME = '', NODE_COMPILE_CACHE = '' } = process.env

/** Creates a folder with this file .env. */
async function folderWith(t: Test, envFile: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'env-file-'))
  t.teardown(() => rm(folder, { recursive: true }))
  if (envFile === 'a folder') await mkdir(join(folder, '.env'))
  else if (envFile === 'a link to itself') await symlink('.env', join(folder, '.env'))
  else if (envFile !== '') await writeFile(join(folder, '.env'), envFile)
  return folder
}

/** Starts a program of src with only these settings, in a new folder with this file .env. */
async function start(
  t: Test,
  program: string[],
  envFile: string,
  env: Record<string, string> = {},
) {
  const [command = '', ...args] = program
  const options = {
    cwd: await folderWith(t, envFile),
    env: { PATH, HOME, NODE_COMPILE_CACHE, TERM: 'xterm', ...env },
    timeout: 30_000,
  }
  const child = spawn(command, args, options)
  t.teardown(() => child.kill())
  const closed = once(child, 'close')
  let stdout = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    stdout += chunk
  })
  const stderr = text(child.stderr)
  const end = async () => {
    await closed
    return { code: child.exitCode, stdout, stderr: await stderr }
  }
  return { child, output: () => stdout, end }
}

const src = resolve(import.meta.dirname, '../../src')
const service = [process.execPath, join(src, 'server.ts')]
const appList = [process.execPath, join(src, 'operator/main.ts'), 'app', 'list']

t.test('.env: its settings apply, and those of the environment win', async (t) => {
  const lines = `# comment\nDATABASE_URL="${login}"\nPORT=1\n\nHOST=none.invalid\nLOG_LEVEL='info'\n`
  const { output, child } = await start(t, service, lines, { PORT: '0', HOST: '127.0.0.1' })
  await until('it listens', () => /listening at http:\/\/127\.0\.0\.1:\d+/.test(output()))
  t.notMatch(output(), /127\.0\.0\.1:1"/)
  t.ok(
    output()
      .split('\n')
      .filter(Boolean)
      .every((line) => JSON.parse(line)),
    'JSON in a pipe',
  )
  child.kill()
})

t.test('.env that cannot be read: one sentence, and exit code 1', async (t) => {
  for (const file of ['a folder', 'a link to itself']) {
    const { end } = await start(t, appList, file, { DATABASE_URL: url })
    const stderr = /^\.env cannot be read \(\w+\)\.\n$/
    t.match(await end(), { code: 1, stdout: '', stderr }, file)
  }
})

t.test('secrets in files: the operator uses them, also from .env', async (t) => {
  const ownerFile = join(await folderWith(t, ''), 'owner')
  await writeFile(ownerFile, url)
  const operator = await start(t, appList, `DATABASE_URL_FILE=${ownerFile}\n`)
  t.match(await operator.end(), { code: 0, stderr: '' })
})

t.test('secrets in files that cannot be used: one sentence, and exit code 1', async (t) => {
  const folder = await folderWith(t, '')
  const [empty, invalid] = [join(folder, 'empty'), join(folder, 'invalid')]
  await writeFile(empty, ' \n')
  await writeFile(invalid, 'mysql://S3cret@db.example/db\n')
  const cases: [Record<string, string>, string | RegExp][] = [
    [{ DATABASE_URL_FILE: empty }, 'The file of DATABASE_URL_FILE is empty.'],
    [{ DATABASE_URL_FILE: folder }, 'The file of DATABASE_URL_FILE cannot be read (EISDIR).'],
    [{ DATABASE_URL_FILE: url }, 'The file of DATABASE_URL_FILE cannot be read (ENOENT).'],
    [{ DATABASE_URL_FILE: invalid }, /^DATABASE_URL must be a URL like .*$/],
  ]
  for (const [env, message] of cases) {
    let error: unknown
    try {
      const environment: NodeJS.ProcessEnv = { ...env }
      readSecretFiles(environment)
      readConfig(environment)
    } catch (thrown) {
      error = thrown
    }
    t.ok(error instanceof OperatorError)
    t.match((error as Error).message, message)
    t.notOk(String(error).includes(url) || String(error).includes('S3cret'))
  }
  const { end } = await start(t, service, '', { DATABASE_URL_FILE: empty })
  const stderr = 'The file of DATABASE_URL_FILE is empty.\n'
  t.match(await end(), { code: 1, stdout: '', stderr })
  const names = ['DATABASE_REPLICA_URL', 'REDIS_URL', 'OTEL_EXPORTER_OTLP_HEADERS']
  for (const name of [...names, 'SERVICE_DATABASE_PASSWORD']) {
    const environment: NodeJS.ProcessEnv = { [`${name}_FILE`]: invalid }
    readSecretFiles(environment)
    t.equal(environment[name], 'mysql://S3cret@db.example/db')
    await writeFile(empty, 'renewed\n')
    environment[`${name}_FILE`] = empty
    readSecretFiles(environment)
    t.equal(environment[name], 'renewed')
  }
})

t.test('terminal: readable log; JSON with NODE_ENV=production; a secret in a file', async (t) => {
  const loginFile = join(await folderWith(t, ''), 'login')
  await writeFile(loginFile, `${login}\n`)
  const command = service.join(' ')
  const onTerminal =
    process.platform === 'darwin'
      ? ['script', '-q', '/dev/null', ...service]
      : ['script', '-qec', command, '/dev/null']
  const settings = {
    ...{ DATABASE_URL_FILE: loginFile, DATABASE_URL: '' },
    ...{ PORT: '0', SHUTDOWN_DELAY_MS: '0' },
  }
  const environments: Record<string, string>[] = [{}, { NODE_ENV: 'production' }]
  for (const env of environments) {
    const { output, child, end } = await start(t, onTerminal, '', { ...settings, ...env })
    const address = () => /listening at (http:\/\/127\.0\.0\.1:\d+)/.exec(output())?.[1]
    await until('it listens', () => address() !== undefined)
    t.equal((await fetch(`${address()}/api/v1/none`)).status, 404)
    await until('the request is in the log', () => output().includes('request'))
    child.stdin.write('\x03')
    await end()
    const isJson = 'NODE_ENV' in env
    t.equal(output().includes('{"level":30'), isJson, JSON.stringify(env))
    t.equal(/INFO\S*: \S*request/.test(output()), !isJson, output())
    t.equal(/^\[\d\d:\d\d:\d\d\.\d{3}\]/m.test(output()), !isJson, 'time of day')
    t.equal(output().includes('\x1b['), !isJson, 'colors')
  }
})
