import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import {
  chmod,
  chown,
  mkdtemp,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { type AddressInfo, connect, createServer } from 'node:net'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import t, { type Test } from 'tap'
import { EmbeddedDatabaseInUse, startEmbedded } from '../../tools/embedded-postgres/embedded.ts'
import { findRunning } from '../../tools/embedded-postgres/running.ts'
import { withEmbedded } from '../../tools/embedded-postgres/shared.ts'
import { until } from '../support/until.ts'

t.test('second start: the data of the first, on another port', async (t) => {
  const folder = await temporaryFolder(t)
  const first = await startEmbedded(folder)
  await query(first.url, "create table kept as select 'Zürich' as place")
  await first.stop()
  t.equal(await findRunning(folder), undefined)
  const second = await startEmbedded(folder)
  t.teardown(() => second.stop())
  t.same(await query(second.url, 'select place from kept'), [{ place: 'Zürich' }])
  const modeOf = async (path: string) => (await stat(join(folder, 'postgres', path))).mode & 0o777
  t.same(await Promise.all(['', 'password', 'log'].map(modeOf)), [0o700, 0o600, 0o600])
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
  t.notMatch(rejected?.reason.message, /postgresql:/, 'the password is not in the message')
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
  const folder = await temporaryFolder(t)
  await (await startEmbedded(folder)).stop()
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
    const folder = await temporaryFolder(t)
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

t.test('stale lock file: another program on its port gets no connection', async (t) => {
  let connections = 0
  const server = createServer((socket) => {
    connections += 1
    socket.destroy()
  }).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const folder = await temporaryFolder(t)
  const first = await startEmbedded(folder)
  await first.stop()
  const lock = join(folder, 'postgres/data/postmaster.pid')
  const { uid, gid } = await stat(join(folder, 'postgres/data/PG_VERSION'))
  const other = spawn('sleep', ['60'], { argv0: 'postgres' })
  t.teardown(() => other.kill())
  // No process, another program of this user, and one whose command looks like PostgreSQL.
  for (const pid of [2 ** 22 - 1, process.pid, other.pid]) {
    await writeFile(lock, `${pid}\n\n\n${port}\n`)
    await chown(lock, uid, gid)
    t.equal(await findRunning(folder), undefined)
  }
  other.kill()
  await once(other, 'exit')
  const second = await startEmbedded(folder)
  t.teardown(() => second.stop())
  t.equal(connections, 0)
})

t.test('each start: a new password, also after an interrupted change', async (t) => {
  const folder = await temporaryFolder(t)
  const passwords = new Set<string>()
  for (let start = 0; start < 3; start += 1) {
    const { url, stop } = await startEmbedded(folder)
    t.same(await query(url, 'select 1 as one'), [{ one: 1 }])
    passwords.add(new URL(url).password)
    await stop()
    // The process ended after the server had got the password, and before the file had its name.
    const [file, next] = ['password', 'password.next'].map((name) => join(folder, 'postgres', name))
    if (start !== 1 || !file || !next) continue
    await rename(file, next)
    await writeFile(file, 'the one before')
  }
  t.equal(passwords.size, 3)
})

t.test(
  'two processes at once: the one that started the database waits for the other',
  async (t) => {
    const folder = await temporaryFolder(t)
    const notices: string[] = []
    const onWait = (sentence: string) => notices.push(sentence)
    const first = use(folder, onWait)
    const url = await first.entered
    const second = use(folder, onWait)
    t.equal(await second.entered, url)
    first.leave()
    await until('the first user waits', async () => notices.length > 0)
    t.match(notices, [/^Another process uses the embedded database/])
    t.same(await query(url, 'select 1 as one'), [{ one: 1 }], 'the second user still has it')
    second.leave()
    await Promise.all([first.done, second.done])
    t.equal(await findRunning(folder), undefined, 'it is stopped at the end')
  },
)

t.test('a command that waits for another process: it says so, and ends after it', async (t) => {
  const folder = await temporaryFolder(t)
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

t.test('other address of this machine: PostgreSQL does not listen there', async (t) => {
  const running = await startEmbedded(await temporaryFolder(t))
  t.teardown(() => running.stop())
  const { port } = new URL(running.url)
  // A link-local address needs its zone: without it, the connection attempt may hang.
  const others = Object.entries(networkInterfaces()).flatMap(([name, list = []]) =>
    list.map(({ address, scopeid }) => (scopeid ? `${address}%${name}` : address)),
  )
  for (const host of ['127.0.0.2', '::1', ...others]) {
    if (host === '127.0.0.1') continue
    const socket = connect(Number(port), host)
    t.teardown(() => socket.destroy())
    await t.rejects(once(socket, 'connect'), host)
  }
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
