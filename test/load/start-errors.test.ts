import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { startEmbedded } from '../../tools/embedded-postgres/embedded.ts'
import { createDatabase } from '../support/database.ts'
import { loginOfService, openAsOwner } from '../support/logins.ts'
import { operator, operatorHere } from '../support/operator-process.ts'
import { hideNewestMigration } from '../support/schema-behind.ts'
import { onServer } from '../support/template.ts'
import { withLengths } from '../support/with-lengths.ts'

const project = join(import.meta.dirname, '../..')
const { url } = await createDatabase(t)
const folder = await mkdtemp(join(tmpdir(), 'start-'))
t.teardown(() => rm(folder, { recursive: true, force: true }))

/** Starts the service like `npm start` and waits until it ends. `onStart` gets its process id and its first output. */
async function start(
  environment: Record<string, string>,
  onStart = async (_pid: number | undefined, _output: Buffer) => {},
  release = project,
) {
  const server = join(release, 'src/server.js')
  const { DATABASE_URL: _, ...around } = process.env
  const env = { ...around, HOST: '127.0.0.1', PORT: '0', LOG_LEVEL: 'silent', ...environment }
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', server], {
    cwd: folder,
    env,
    timeout: 60_000,
  })
  child.stdout.once('data', (output: Buffer) => onStart(child.pid, output))
  const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')])
  return { stderr, code }
}

t.test(
  'no DATABASE_URL in the image, which has no tools: one sentence and exit code 1',
  async (t) => {
    const image = t.testdir()
    for (const name of ['src', 'migrations', 'seeds', 'package.json'])
      await cp(join(project, name), join(image, name), { recursive: true })
    await symlink(join(project, 'node_modules'), join(image, 'node_modules'))
    const stderr = 'DATABASE_URL must be set: this installation has no embedded PostgreSQL.\n'
    t.same(await start({}, undefined, image), { stderr, code: 1 })
    const listed = await operator(['app', 'list'], { release: image })
    t.match(listed, { stderr, code: 1 })
  },
)

t.test('HOST, PORT or TRUSTED_PROXIES cannot be used: the reason and exit code 1', async (t) => {
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  t.teardown(() => taken.close())
  const address = taken.address()
  const port = typeof address === 'object' ? String(address?.port) : ''
  const settings = [
    { PORT: port },
    { HOST: '203.0.113.9' },
    { HOST: 'nowhere.invalid' },
    { TRUSTED_PROXIES: '10.0.0.0/8,proxy' },
  ]
  const results = await Promise.all(settings.map((set) => start({ DATABASE_URL: url, ...set })))
  t.match(
    results,
    withLengths([
      {
        stderr:
          /^Port \d+ is in use\. Set PORT to another one, or stop the program that uses it\.\n$/,
        code: 1,
      },
      { stderr: /^listen EADDRNOTAVAIL.* 203\.0\.113\.9\n$/, code: 1 },
      { stderr: /^getaddrinfo \w+ nowhere\.invalid\n$/, code: 1 },
      { stderr: /^TRUSTED_PROXIES must be addresses .*\n$/, code: 1 },
    ]),
  )
})

t.test(
  'DATABASE_URL cannot be used: one sentence without its password and exit code 1',
  async (t) => {
    const DATABASE_URL = 'postgres://service:S3cret@127.0.0.1:99999/db'
    const stderr =
      'DATABASE_URL must be a URL like postgres://USER:PASSWORD@HOST:5432/DATABASE, ' +
      'with / in a password as %2F\n'
    const env = { DATABASE_URL }
    const results = [start(env), operatorHere(['app', 'list'], env)]
    t.match(
      await Promise.all(results),
      withLengths([
        { stderr, code: 1 },
        { stderr, code: 1 },
      ]),
    )
  },
)

/** Starts it until it refuses to run. On a busy machine, the first check may end without a response of PostgreSQL. */
async function refusal(environment: Record<string, string>) {
  let ended = await start(environment)
  while (ended.code === 0) ended = await start(environment)
  return ended
}

t.test('denied right: one sentence with the message of PostgreSQL, and exit code 1', async (t) => {
  const { url } = await createDatabase(t)
  const DATABASE_URL = await loginOfService(t, openAsOwner(t, url), url)
  const name = new URL(url).pathname.slice(1)
  const expectDenied = async (message: string) =>
    t.same(await refusal({ DATABASE_URL }), {
      stderr:
        `PostgreSQL denies the service a right that it needs (${message}). ` +
        'Run `operator migrate` as the owner of the database.\n',
      code: 1,
    })
  await onServer(url, 'revoke usage on schema public from public')
  await expectDenied('permission denied for schema public')
  await onServer(url, `revoke connect on database ${name} from public`)
  await expectDenied(`permission denied for database "${name}"`)
})

t.test('outdated schema: one sentence and exit code 1', async (t) => {
  const { url } = await createDatabase(t)
  const db = openAsOwner(t, url)
  const { name } = await hideNewestMigration(db)
  t.same(await refusal({ DATABASE_URL: await loginOfService(t, db, url) }), {
    stderr: `The schema lacks ${name}. Run \`operator migrate\` first.\n`,
    code: 1,
  })
})

t.test('embedded PostgreSQL cannot start: one sentence and exit code 1', async (t) => {
  const file = join(folder, 'file')
  await writeFile(file, '')
  t.same(await start({ DATA_DIR: file }), {
    stderr: `${file} cannot be a folder for data (EEXIST): set DATA_DIR to another one.\n`,
    code: 1,
  })
  if (existsSync('/proc/self')) {
    // Linux: mkdir in /proc fails with ENOENT.
    const sentence = ' cannot be a folder for data (ENOENT): set DATA_DIR to another one.'
    const { message } = await startEmbedded('/proc').catch((error) => error)
    t.equal(message, `/proc${sentence}`)
    const env = { DATA_DIR: '/proc/none' }
    t.match(await operator(['app', 'list'], { env }), {
      stderr: `/proc/none${sentence}\n`,
      code: 1,
    })
  }
})

t.test('embedded PostgreSQL in use, then killed: one sentence and exit code 1', async (t) => {
  const dataDir = join(folder, 'data', 'within')
  const env = { DATA_DIR: dataDir, LOG_LEVEL: 'info' }
  const { stderr, code } = await start(env, async (starter, output) => {
    t.equal(output.toString()[0], '{', 'only JSON on standard output')
    t.same(await start({ DATA_DIR: dataDir }), {
      stderr: `The embedded database in ${dataDir} is in use: process ${starter} has started it. Stop it, or set DATA_DIR to another folder.\n`,
      code: 1,
    })
    const lock = await readFile(join(dataDir, 'postgres/data/postmaster.pid'), 'utf8')
    process.kill(Number.parseInt(lock, 10), 'SIGKILL')
  })
  t.equal(code, 1)
  t.match(
    stderr,
    /^\nThe service runs at .*\nThe embedded PostgreSQL was killed: start again \(.*log\)\.\n$/s,
  )
  t.match(await operator(['migrate'], { env: { DATA_DIR: dataDir } }), { code: 0 })
})
