import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import t from 'tap'
import { startEmbedded } from '../../tools/embedded-postgres/embedded.ts'
import { findRunning } from '../../tools/embedded-postgres/running.ts'
import { createDatabase } from '../support/database.ts'
import { operator, operatorHere } from '../support/operator-process.ts'
import { onServer } from '../support/template.ts'
import { until } from '../support/until.ts'

const list = (DATABASE_URL: string) => operatorHere(['app', 'list'], { DATABASE_URL })

t.test('Database error: one sentence', async (t) => {
  const { url } = await createDatabase(t)
  // Nothing listens on the port of a client, and no other program can take it.
  const client = connect(Number(new URL(url).port), new URL(url).hostname)
  await once(client, 'connect')
  t.teardown(() => client.destroy())
  const unreachable = 'PostgreSQL cannot be reached at the address in DATABASE_URL'
  const cases: [string, string | RegExp][] = [
    [
      changed(url, { hostname: '127.0.0.1', port: String(client.localPort) }),
      `${unreachable}: connect ECONNREFUSED 127.0.0.1:${client.localPort}.`,
    ],
    [changed(url, { hostname: 'no-such-host.invalid' }), new RegExp(`^${unreachable}: `)],
    [
      changed(url, { pathname: '/no_such_database' }),
      'The database in DATABASE_URL does not exist: create it first.',
    ],
    ['mysql://localhost/x', /^DATABASE_URL must be a URL like/],
  ]
  await Promise.all(
    cases.map(async ([wrong, sentence]) => {
      const { code, stdout, stderr } = await list(wrong)
      t.equal(code, 1)
      t.equal(stdout, '')
      t.match(stderr, typeof sentence === 'string' ? `${sentence}\n` : sentence)
      t.equal(stderr.trimEnd().split('\n').length, 1, stderr)
    }),
  )
})

t.test('Wrong or missing password: one sentence', async (t) => {
  const { url } = await createDatabase(t)
  await onServer(url, `create role wrong_password login password 'right'`)
  t.teardown(() => onServer(url, 'drop role wrong_password'))
  // Some servers accept every password from this machine.
  const trustsAll = await canConnect(
    changed(url, { username: 'wrong_password', password: 'wrong' }),
  )
  if (trustsAll) {
    t.pass('this server accepts every password')
    return
  }
  const wrong = await list(changed(url, { username: 'wrong_password', password: 'wrong' }))
  t.match(wrong, {
    code: 1,
    stderr: 'PostgreSQL rejects the user or the password in DATABASE_URL.\n',
  })
  const sockets = () =>
    process.getActiveResourcesInfo().filter((resource) => resource === 'TCPSocketWrap').length
  const before = sockets()
  const none = await list(changed(url, { username: 'wrong_password', password: '' }))
  t.match(none, { code: 1, stderr: 'PostgreSQL requires a password, and DATABASE_URL has none.\n' })
  await until('no socket is left open', () => Promise.resolve(sockets() <= before))
})

t.test('Missing migrations: the error names the command to run', async (t) => {
  const { url } = await createDatabase(t)
  await onServer(url, `delete from kysely_migration where name like '0004%'`)
  const { code, stderr } = await list(url)
  t.equal(code, 1)
  t.match(
    stderr,
    /^The schema .* outdated \(0004-\S+ not applied\): run `npm run operator -- migrate`/,
  )
})

t.test('Read-only session: one sentence', async (t) => {
  const { url } = await createDatabase(t)
  const reading = new URL(url)
  reading.searchParams.set('options', '-c default_transaction_read_only=on')
  const env = { DATABASE_URL: reading.href }
  const { code, stderr } = await operatorHere(['app', 'create', 'x'], env)
  t.equal(code, 1)
  t.match(stderr, /^The database is read-only/)
})

t.test(
  'No DATABASE_URL: the embedded database, running or not, and two commands at once',
  async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'operator-test-'))
    t.teardown(() => rm(folder, { recursive: true }))
    const env = { DATA_DIR: folder }
    t.match(await operatorHere(['migrate'], env), { code: 0 })
    t.equal(await findRunning(folder), undefined, 'it was stopped afterwards')
    const running = await startEmbedded(folder)
    t.match(await operatorHere(['app', 'create', 'first'], env), { code: 0 })
    t.equal(await findRunning(folder), running.url, 'it still runs')
    await running.stop()
    const lists = await Promise.all([1, 2].map(() => operator(['app', 'list', '--json'], { env })))
    for (const list of lists) t.match(list.json(), { items: [{ name: 'first' }] }, list.stderr)
  },
)

function changed(
  url: string,
  parts: Partial<Pick<URL, 'port' | 'hostname' | 'pathname' | 'username' | 'password'>>,
) {
  return Object.assign(new URL(url), parts).href
}

async function canConnect(connectionString: string): Promise<boolean> {
  const client = new pg.Client({ connectionString })
  return await client.connect().then(
    () => client.end().then(() => true),
    () => false,
  )
}
