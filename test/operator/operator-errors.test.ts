import { sql } from 'kysely'
import t from 'tap'
import { exitResult, explainDatabaseError } from '../../src/operator/errors.ts'
import { OperatorError } from '../../src/operator-error.ts'
import { createDatabase } from '../support/database.ts'
import { portfolioLine, prepareImport } from '../support/importing.ts'
import { openAsOwner } from '../support/logins.ts'
import { operatorHere } from '../support/operator-process.ts'
import { until } from '../support/until.ts'

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
for (const [state, sentence] of Object.entries(sentences))
  t.test(`SQLSTATE ${state}: one sentence, exit code 1`, async (t) => {
    const { code, stdout, stderr } = await operatorHere(['app', 'create', state], { DATABASE_URL })
    t.same([code, stdout, stderr], [1, '', `${sentence}\n`])
    const asJson = await operatorHere(['app', 'create', state, '--json'], { DATABASE_URL })
    t.same([asJson.code, asJson.json(), asJson.stderr], [1, { error: sentence }, `${sentence}\n`])
  })

t.test('--verbose: the stack of an unexpected error', async (t) => {
  const verbose = await operatorHere(['--verbose', 'app', 'create', '22012'], { DATABASE_URL })
  t.match(verbose, { code: 1, stderr: /^error: the reason\n {4}at / })
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
