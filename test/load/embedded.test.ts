import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, chown, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import t, { type Test } from 'tap'
import { EmbeddedDatabaseInUse, startEmbedded } from '../../tools/embedded-postgres/embedded.ts'
import { findRunning } from '../../tools/embedded-postgres/running.ts'
import { withEmbedded } from '../../tools/embedded-postgres/shared.ts'
import { operatorHere } from '../support/operator-process.ts'
import { until } from '../support/until.ts'
import { withLengths } from '../support/with-lengths.ts'

/** Data of an earlier start. Tests of later starts copy it, because a first start takes five times the processor time of both. */
const made = await temporaryFolder(t)
await (await startEmbedded(made)).stop()

t.test('second start: the data of the first', async (t) => {
  const folder = await temporaryFolder(t)
  const first = await startEmbedded(folder)
  await query(first.url, "create table kept as select 'Zürich' as place")
  await first.stop()
  t.equal(await findRunning(folder), undefined)
  const second = await startEmbedded(folder)
  t.teardown(() => second.stop())
  t.same(await query(second.url, 'select place from kept'), [{ place: 'Zürich' }])
  const modeOf = async (path: string) => (await stat(join(folder, 'postgres', path))).mode & 0o777
  t.same(await Promise.all(['', 'log'].map(modeOf)), [0o700, 0o600])
})

t.test('command without DATABASE_URL: its first sentence says so', async (t) => {
  const DATA_DIR = await temporaryFolder(t)
  const { code, stderr } = await operatorHere(['app', 'list'], { DATA_DIR })
  t.equal(code, 1)
  t.match(
    stderr,
    /^The database is the embedded one in .+, because DATABASE_URL is not set\.\nThe schema is outdated: run `operator migrate` first\.\n$/,
  )
})

t.test('two first starts at once: one runs, the other gets its URL', async (t) => {
  const folder = await temporaryFolder(t)
  const starts = await Promise.allSettled([startEmbedded(folder), startEmbedded(folder)])
  const [started] = starts.filter((start) => start.status === 'fulfilled')
  const [rejected] = starts.filter((start) => start.status === 'rejected')
  t.teardown(() => started?.value.stop())
  t.ok(rejected?.reason instanceof EmbeddedDatabaseInUse)
  t.equal(rejected?.reason.url, started?.value.url)
  t.equal(await findRunning(folder), started?.value.url)
})

t.test('root without user namespaces: the data belong to an ordinary user', async (t) => {
  const folder = await temporaryFolder(t)
  await chmod(folder, 0o755)
  const programs = await temporaryFolder(t)
  await chmod(programs, 0o755)
  // The command unshare is missing.
  for (const name of ['env', 'test', 'sh', 'cat']) {
    const place = ['/usr/bin', '/bin'].find((place) => existsSync(join(place, name)))
    await symlink(join(String(place), name), join(programs, name))
  }
  const { PATH } = process.env
  t.teardown(() => {
    process.env.PATH = PATH
  })
  process.env.PATH = programs
  for (const start of ['first', 'second']) {
    const database = await startEmbedded(folder)
    t.same(await query(database.url, 'select 1 as one'), [{ one: 1 }], start)
    await database.stop()
    const { uid } = await stat(join(folder, 'postgres/data'))
    t.ok(uid > 0, `user ${uid}`)
  }
})

t.test('empty lock file: waits until the other start has written it, or removed it', async (t) => {
  const folder = await folderWithData(t)
  const lock = join(folder, 'postgres/data/postmaster.pid')
  const log = join(folder, 'postgres/log')
  await writeFile(lock, '')
  // PostgreSQL also rejects the permissions of a file of another user.
  const { uid, gid } = await stat(log)
  await chown(lock, uid, gid)
  const start = startEmbedded(folder)
  t.teardown(async () => (await start).stop())
  const rejections = async () => (await readFile(log, 'utf8')).split('lock file').length - 1
  await until('PostgreSQL has rejected it twice', async () => (await rejections()) >= 2)
  await rm(lock)
  t.same(await query((await start).url, 'select 1 as one'), [{ one: 1 }])
})

for (const signal of ['SIGINT', 'SIGKILL'] as const)
  t.test(`${signal} to its process: the database stops, and the next one starts`, async (t) => {
    const folder = await folderWithData(t)
    const module = join(import.meta.dirname, '../../tools/embedded-postgres/embedded.ts')
    const program = `import { startEmbedded } from ${JSON.stringify(module)}
      console.log((await startEmbedded(${JSON.stringify(folder)})).url)`
    // The signal goes to the whole process group, as from a terminal.
    const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
      detached: true,
    })
    const [url] = await once(child.stdout.setEncoding('utf8'), 'data')
    await query(url.trim(), 'create table kept as select 1 as one')
    process.kill(-Number(child.pid), signal)
    await once(child, 'exit')
    await until('PostgreSQL has stopped', async () => !(await findRunning(folder)))
    const next = await startEmbedded(folder)
    t.teardown(() => next.stop())
    t.same(await query(next.url, 'select one from kept'), [{ one: 1 }])
  })

t.test('stale lock files: the next start removes them', async (t) => {
  const folder = await folderWithData(t)
  const cluster = join(folder, 'postgres')
  const { uid, gid } = await stat(join(cluster, 'data/PG_VERSION'))
  // After a power cut, another program may have the process id. No process of PostgreSQL has this one.
  for (const file of ['data/postmaster.pid', '.s.PGSQL.5432.lock']) {
    await writeFile(join(cluster, file), `${process.pid}\n\n\n5432\n`)
    await chown(join(cluster, file), uid, gid)
  }
  t.equal(await findRunning(folder), undefined)
  const second = await startEmbedded(folder)
  t.teardown(() => second.stop())
  t.same(await query(second.url, 'select 1 as one'), [{ one: 1 }])
})

t.test('data of release 1.0.0, whose sockets ask for a password: they go on', async (t) => {
  const folder = await folderWithData(t)
  const first = await startEmbedded(folder)
  await query(first.url, "create table kept as select 'Zürich' as place")
  await query(first.url, "alter role postgres password 'of 1.0.0'")
  await first.stop()
  const scram = 'local all all scram-sha-256\nhost all all 127.0.0.1/32 scram-sha-256\n'
  await writeFile(join(folder, 'postgres/data/pg_hba.conf'), scram)
  await writeFile(join(folder, 'postgres/password'), 'of 1.0.0', { mode: 0o600 })
  const second = await startEmbedded(folder)
  t.teardown(() => second.stop())
  t.same(await query(second.url, 'select place from kept'), [{ place: 'Zürich' }])
})

t.test('a path that is too long for a socket: a link is used', async (t) => {
  const folder = join(await temporaryFolder(t), 'a'.repeat(60), 'b'.repeat(60))
  const running = await startEmbedded(folder)
  t.teardown(() => running.stop())
  t.same(await query(running.url, 'select 1 as one'), [{ one: 1 }])
  t.equal(await findRunning(folder), running.url)
})

t.test(
  'two processes at once: the one that started the database waits for the other',
  async (t) => {
    const folder = await folderWithData(t)
    const notices: string[] = []
    const onWait = (sentence: string) => notices.push(sentence)
    const first = use(folder, onWait)
    const url = await first.entered
    const second = use(folder, onWait)
    t.equal(await second.entered, url)
    first.leave()
    await until('the first user waits', async () => notices.length > 0)
    t.match(notices, withLengths([/^Another process uses the embedded database/]))
    t.same(await query(url, 'select 1 as one'), [{ one: 1 }], 'the second user still has it')
    second.leave()
    await Promise.all([first.done, second.done])
    t.equal(await findRunning(folder), undefined, 'it is stopped at the end')
  },
)

t.test('a command that waits for another process: it says so, and ends after it', async (t) => {
  const folder = await folderWithData(t)
  const command = (...args: string[]) => {
    const main = join(import.meta.dirname, '../../src/operator/main.ts')
    const env = { PATH: process.env.PATH, DATA_DIR: folder }
    const child = spawn(process.execPath, [main, ...args], { env, stdio: 'pipe' })
    t.teardown(() => child.kill('SIGKILL'))
    return child
  }
  t.same(await once(command('migrate'), 'exit'), [0, null])
  const refresh = command('refresh', '-')
  let stderr = ''
  refresh.stderr.setEncoding('utf8').on('data', (text) => {
    stderr += text
  })
  await until('the database runs', async () => (await findRunning(folder)) !== undefined)
  const other = use(folder, () => {})
  await other.entered
  refresh.stdin.end()
  await until('it says so', async () => stderr.includes('Another process uses the embedded'))
  t.equal(refresh.exitCode, null)
  other.leave()
  t.same(await once(refresh, 'exit'), [0, null])
  await other.done
})

t.test('no port: PostgreSQL listens on its socket alone', async (t) => {
  const running = await startEmbedded(await folderWithData(t))
  t.teardown(() => running.stop())
  t.same(await query(running.url, 'show listen_addresses'), [{ listen_addresses: '' }])
  t.same(await query(running.url, 'select inet_server_port() as port'), [{ port: null }])
})

// Only root can start a program as another user.
if (process.getuid?.() === 0)
  t.test('another user of this machine: no connection', async (t) => {
    const folder = await folderWithData(t)
    const running = await startEmbedded(folder)
    t.teardown(() => running.stop())
    const program = `require('node:net').connect(process.argv[1])
      .on('connect', () => console.log('connected'))
      .on('error', ({ code }) => console.log(code))`
    const socket = join(folder, 'postgres/.s.PGSQL.5432')
    const connectAs = async (uid: number) => {
      const options = { uid, stdio: 'pipe', timeout: 10_000 } as const
      const child = spawn(process.execPath, ['--eval', program, socket], options)
      const [output] = await once(child.stdout.setEncoding('utf8'), 'data')
      child.kill()
      return output.trim()
    }
    t.equal(await connectAs(0), 'connected')
    t.equal(await connectAs(4711), 'EACCES')
  })

/** Uses the database of a folder until `leave` is called. */
function use(folder: string, onWait: (sentence: string) => void) {
  const [entered, left] = [Promise.withResolvers<string>(), Promise.withResolvers<void>()]
  const done = withEmbedded(
    folder,
    (url) => {
      entered.resolve(url)
      return left.promise
    },
    onWait,
  )
  return { entered: entered.promise, leave: left.resolve, done }
}

/** Returns a copy of the data of an earlier start. */
async function folderWithData(t: Test) {
  const folder = await temporaryFolder(t)
  await promisify(execFile)('cp', ['--archive', join(made, 'postgres'), folder])
  return folder
}

async function temporaryFolder(t: Test) {
  const folder = await mkdtemp(join(tmpdir(), 'investment-data-test-'))
  await chmod(folder, 0o711)
  t.teardown(() => rm(folder, { recursive: true }))
  return folder
}

async function query(connectionString: string, text: string) {
  const client = new pg.Client({ connectionString })
  client.on('error', () => {})
  await client.connect()
  return client
    .query(text)
    .then(
      ({ rows }) => rows,
      (error) => error,
    )
    .finally(() => client.end())
}
