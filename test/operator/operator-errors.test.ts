import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import pg from 'pg'
import t from 'tap'
import { exitResult, explainDatabaseError } from '../../src/operator/errors.ts'
import { OperatorError } from '../../src/operator-error.ts'
import { databaseName } from '../../src/postgres/server-urls.ts'
import { startEmbedded } from '../../tools/embedded-postgres/embedded.ts'
import { findRunning } from '../../tools/embedded-postgres/running.ts'
import { createDatabase } from '../support/database.ts'
import { portfolioLine, prepareImport } from '../support/importing.ts'
import { openAsOwner } from '../support/logins.ts'
import { operator, operatorHere } from '../support/operator-process.ts'
import { onServer } from '../support/template.ts'
import { until } from '../support/until.ts'
import { withLengths } from '../support/with-lengths.ts'

const { url: DATABASE_URL } = await createDatabase(t)
const db = openAsOwner(t, DATABASE_URL)
// A trigger raises the SQLSTATE that is the name of the new app.
await sql`create function fail() returns trigger language plpgsql as $$ begin
  raise 'the reason' using errcode = new.name; end $$`.execute(db)
await sql`create trigger fail before insert on app for each row execute function fail()`.execute(db)

const broken = 'The connection to PostgreSQL broke; unfinished changes are rolled back.'
const sentences: Record<string, string> = {
  '28P01': 'PostgreSQL rejects the user or the password in DATABASE_URL.',
  '28000': 'PostgreSQL rejects this user, database or address (see its pg_hba.conf) (the reason).',
  '3D000': 'The database in DATABASE_URL does not exist: create it first.',
  '22P05':
    'The encoding of the database cannot store this text (the reason): move the rows to a database with UTF8.',
  '25006': 'The database is read-only: it is a standby, or the role may not write.',
  '42501':
    'The role in DATABASE_URL may not do this: use the one that owns the tables (the reason).',
  '53100': 'The disk of PostgreSQL is full; nothing was changed.',
  '53300': 'PostgreSQL has no free connection: try again later.',
  '53200': 'PostgreSQL is out of resources (the reason).',
  '55P03': 'Another session holds a lock that this command needs: try again later.',
  '57014': 'The statement was cancelled; nothing was changed.',
  '57P03': 'PostgreSQL is starting or stopping: try again later.',
  '57P01': broken,
  '08006': broken,
  '23505': 'Another session wrote the same rows at the same time; nothing was changed: try again.',
  '23503': 'Another session deleted the parent row at the same time; nothing was changed.',
  '40P01': 'Deadlock with another session; nothing was changed: try again.',
  '22012': 'Unexpected error: the reason (--verbose prints its stack).',
}
const DATABASE = `The database is ${databaseName(DATABASE_URL)}.`
for (const [state, sentence] of Object.entries(sentences))
  t.test(`SQLSTATE ${state}: one sentence, exit code 1`, async (t) => {
    const { code, stdout, stderr } = await operatorHere(['app', 'create', state], { DATABASE_URL })
    const lines = sentence.startsWith('Unexpected') ? [sentence] : [sentence, DATABASE]
    t.same([code, stdout, stderr], [1, '', `${lines.join('\n')}\n`])
    const asJson = await operatorHere(['app', 'create', state, '--json'], { DATABASE_URL })
    t.same([asJson.code, asJson.json(), asJson.stderr], [1, { error: sentence }, stderr])
  })

t.test('--verbose: the stack of an unexpected error', async (t) => {
  const verbose = await operatorHere(['--verbose', 'app', 'create', '22012'], { DATABASE_URL })
  t.match(verbose, { code: 1, stderr: /^The database is \S+ on \S+\.\nerror: the reason\n {4}at / })
})

t.test(
  'connection broken in the commit of an import: the rows may be imported or not',
  async (t) => {
    const { db, newConnection, run } = await prepareImport(t)
    const connection = await newConnection()
    await sql`create function commit_slowly() returns trigger language plpgsql as $$ begin
    perform pg_sleep(30); return null; end $$`.execute(db)
    // A deferred trigger runs in the commit.
    await sql`create constraint trigger commit_slowly after update on connection
    deferrable initially deferred for each row execute function commit_slowly()`.execute(db)
    const importing = run('portfolio-transactions', connection, portfolioLine(1))
    const failed = importing.catch((error) => error)
    const inCommit = sql<{ pid: number }>`select pid from pg_stat_activity
    where datname = current_database() and query = 'commit' and wait_event = 'PgSleep'`
    await until('it commits', async () => (await inCommit.execute(db)).rows.length === 1)
    await sql`select pg_terminate_backend(pid) from (${inCommit}) as session`.execute(db)
    t.match(exitResult(await failed, false, new AbortController().signal, ''), {
      exitCode: 1,
      sentence: /broke during the commit: the rows may be imported or not\. Import them again: /,
    })
    await sql`drop trigger commit_slowly on connection`.execute(db)
    t.match(await run('portfolio-transactions', connection, portfolioLine(1)), { inserted: 1 })
  },
)

t.test('interrupted: 128 and the number of the signal, and its own sentence', async (t) => {
  const interrupted = 'Interrupted; unfinished changes are rolled back.'
  for (const [signal, exitCode] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    const end = (error: Error) => exitResult(error, false, AbortSignal.abort(signal), '')
    t.match(end(new Error('aborted')), { exitCode, sentence: interrupted })
    const sentence = 'Interrupted; nothing was imported.'
    t.match(end(new OperatorError(sentence)), { exitCode, sentence })
  }
})

t.test('errors of Node.js and pg without a SQLSTATE: one sentence', async (t) => {
  const ofNode = (code: string, syscall: string, message: string) =>
    Object.assign(new Error(message), { code, syscall })
  const refused = ofNode('ECONNREFUSED', 'connect', 'connect ECONNREFUSED ::1:5432')
  const unreachable = 'PostgreSQL cannot be reached at the address in DATABASE_URL'
  const cases: [Error, string | undefined][] = [
    [ofNode('ECONNRESET', 'read', 'read ECONNRESET'), broken],
    [ofNode('EPIPE', 'write', 'write EPIPE'), broken],
    [refused, `${unreachable}: connect ECONNREFUSED ::1:5432.`],
    [new AggregateError([refused, new Error('127.0.0.1')]), `${unreachable}: ${refused.message}.`],
    [ofNode('ENOTFOUND', 'getaddrinfo', 'no such host'), `${unreachable}: no such host.`],
    [ofNode('EHOSTUNREACH', 'read', 'no route'), `${unreachable}: no route.`],
    [new Error('timeout expired'), `${unreachable}: it does not respond.`],
    [new Error('Connection terminated unexpectedly'), broken],
    [new Error('Client has encountered a connection error and is not queryable'), broken],
    [
      new Error('SASL: client password must be a string'),
      'PostgreSQL requires a password, and DATABASE_URL has none.',
    ],
    [
      new Error('The server does not support SSL connections'),
      'DATABASE_URL requires TLS, which this PostgreSQL does not support.',
    ],
    [ofNode('EACCES', 'open', 'open file'), undefined],
    [new TypeError('a fault of the program'), undefined],
  ]
  for (const [error, sentence] of cases)
    t.equal(explainDatabaseError(error), sentence, error.message)
})

t.test('connection to the database', async (t) => {
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
        const names = wrong.startsWith('mysql:') ? [] : [/^The database is \S+ on \S+\.$/]
        const rest = stderr.trimEnd().split('\n').slice(1)
        t.equal(rest.length, names.length, stderr)
        t.match(rest, names, stderr)
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
    t.match(none, {
      code: 1,
      stderr: 'PostgreSQL requires a password, and DATABASE_URL has none.\n',
    })
    await until('no socket is left open', () => Promise.resolve(sockets() <= before))
  })

  t.test('Missing migrations: the error names the command to run', async (t) => {
    const { url } = await createDatabase(t)
    await onServer(url, `delete from kysely_migration where name like '0004%'`)
    const { code, stderr } = await list(url)
    t.equal(code, 1)
    t.match(stderr, /^The schema .* outdated \(0004-\S+ not applied\): run `operator migrate`/)
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
      const lists = await Promise.all(
        [1, 2].map(() => operator(['app', 'list', '--json'], { env })),
      )
      for (const list of lists)
        t.match(list.json(), withLengths({ items: [{ name: 'first' }] }), list.stderr)
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
})

t.test(
  'a variable of libpq that a connection would ignore: an error before it connects',
  async (t) => {
    const environment = { DATABASE_URL, PGCHANNELBINDING: 'require' }
    const { code, stderr } = await operatorHere(['app', 'list'], environment)
    t.equal(code, 1)
    t.match(stderr, /^DATABASE_URL cannot obey PGCHANNELBINDING of the environment: use sslmode=/)
  },
)

t.test(
  'search_path of the role behind a pooler: an error with the statement that helps',
  async (t) => {
    const { url } = await createDatabase(t)
    const database = new URL(url).pathname.slice(1)
    const behindPooler = { DATABASE_URL: url, DATABASE_POOLER: 'true' }
    t.match(await operatorHere(['app', 'list'], behindPooler), { code: 0 })
    await onServer(url, `alter database ${database} set search_path = pg_catalog`)
    t.match(await operatorHere(['app', 'list'], { DATABASE_URL: url }), { code: 0 }, 'without one')
    const { code, stderr } = await operatorHere(['app', 'list'], behindPooler)
    t.equal(code, 1)
    const [, statement = ''] = /\n(alter role .*);\n/.exec(stderr) ?? []
    t.match(statement, / set search_path = 'public'$/)
    await onServer(url, statement)
    t.match(await operatorHere(['app', 'list'], behindPooler), { code: 0 })
  },
)
