import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import t, { type Test } from 'tap'
import { withDatabase } from '../../src/operator/database.ts'
import { portfolioLine, prepareImport } from '../support/importing.ts'
import { isCitus } from '../support/template.ts'
import { until } from '../support/until.ts'

const { url, db, pool, newConnection, rowCounts } = await prepareImport(t)
const main = join(import.meta.dirname, '../../src/operator/main.ts')
const rows = join(t.testdir(), 'rows.ndjson')
await writeFile(rows, `${portfolioLine(1)}\n`)

/** Command line of an import in a new process. */
const importInto = ({ id }: { id: string }, file: string) => [
  ...[process.execPath, '--disable-warning=ExperimentalWarning', main],
  ...['import', 'portfolio-transactions', '--connection', id, file],
]

function start([command = '', ...args]: string[]) {
  return spawn(command, args, { env: { ...process.env, DATABASE_URL: url, TERM: 'xterm' } })
}

/** Statement of an import that locks the connection. */
const WRITING = '-- Sets the time of the refresh.%'

/** Locks a connection in another session, until the test ends. */
async function lock(t: Test, id: string) {
  const holder = new pg.Client({ connectionString: url, application_name: 'another-program' })
  await holder.connect()
  t.teardown(() => holder.end())
  await holder.query('begin')
  await holder.query('select from connection where id = $1 for update', [id])
}

/** Number of transactions of the operator whose last statement is like this one. */
async function transactions(statement = '%'): Promise<number> {
  const { rows } = await pool.query(
    `select from pg_stat_activity where datname = current_database() and state <> 'idle'
       and application_name = 'investment-data-operator'
       and query like $1`,
    [statement],
  )
  return rows.length
}

async function outputOf(child: ChildProcessWithoutNullStreams, pattern: RegExp): Promise<string> {
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk
    })
  }
  await until(`output of ${pattern}`, () => pattern.test(output) || child.exitCode !== null)
  return output
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  t.test(
    `${signal} while an import waits: the import has said that it waits, and ends`,
    async (t) => {
      const connection = await newConnection()
      await lock(t, connection.id)
      const child = start(importInto(connection, rows))
      t.match(
        await outputOf(child, /\n/),
        /^Waiting for a lock \(process \d+ of PostgreSQL\): update connection .* finds the session that holds it\.\n$/,
      )
      const [rest, exit] = [text(child.stderr), once(child, 'exit')]
      child.kill(signal)
      // As without a listener, which is 130 or 143 in a shell.
      t.same(await exit, [null, signal])
      t.equal(await rest, 'Interrupted; nothing was imported.\n')
      await until('no transaction is left', async () => (await transactions()) === 0, 5_000)
      t.match(await rowCounts(connection), { portfolio: 0 })
    },
  )
}

t.test('SIGINT while PostgreSQL does not respond: the command ends', async (t) => {
  const connection = await newConnection()
  await lock(t, connection.id)
  const child = start(importInto(connection, rows))
  await until('it waits', async () => (await transactions(WRITING)) === 1)
  const { rows: sessions } = await pool.query(
    `select pid from pg_stat_activity
     where datname = current_database() and state = 'active' and query like '${WRITING}'`,
  )
  t.equal(sessions.length, 1)
  // A stopped session rolls back nothing.
  for (const { pid } of sessions) process.kill(pid, 'SIGSTOP')
  t.teardown(() => sessions.map(({ pid }) => process.kill(pid, 'SIGCONT')))
  const [rest, exit] = [text(child.stderr), once(child, 'exit')]
  child.kill('SIGINT')
  t.same(await exit, [null, 'SIGINT'])
  t.equal(await rest, 'Interrupted; nothing was imported.\n')
})

const COMMITTING: [string, RegExp][] = [
  ['import', /^Read 1 row: 1 inserted/],
  ['connection delete', /^Connection \S+ of app \S+ is deleted with 0 portfolio/],
]
// Citus supports no triggers on distributed tables.
for (const [name, sentence] of isCitus ? [] : COMMITTING)
  t.test(`SIGINT during the commit of ${name}: the command finishes, and reports it`, async (t) => {
    const connection = await newConnection()
    // A deferred trigger runs in the commit.
    await pool.query(`
      create function wait_in_commit() returns trigger language plpgsql as $$ begin
        perform pg_advisory_xact_lock(17); return null; end $$;
      create constraint trigger wait_in_commit after update or delete on connection
        deferrable initially deferred for each row execute function wait_in_commit()`)
    t.teardown(() => pool.query('drop function wait_in_commit cascade'))
    const holder = await pool.connect()
    await holder.query('select pg_advisory_lock(17)')
    const importing = importInto(connection, rows)
    const deleting = [...importing.slice(0, 3), 'connection', 'delete', connection.id]
    const child = start(name === 'import' ? importing : deleting)
    const [output, exit] = [text(child.stdout), once(child, 'exit')]
    await until('it commits', async () => (await transactions('commit')) === 1)
    child.kill('SIGINT')
    // Nothing shows when the command has received the signal.
    await sleep(1_000)
    await holder.query('select pg_advisory_unlock(17)')
    holder.release()
    t.same(await exit, [null, 'SIGINT'])
    t.match(await output, sentence)
    const count = 'select portfolio_transactions::integer as n from connection where id = $1'
    const { rows: found } = await pool.query(count, [connection.id])
    t.same(found, name === 'import' ? [{ n: 1 }] : [])
  })

t.test('SIGINT while an import waits for standard input: it ends', async (t) => {
  const connection = await newConnection()
  const child = start(importInto(connection, '-'))
  child.stdin.write(`${portfolioLine(1)}\n`)
  await until('it copies rows', async () => (await transactions('copy %')) === 1)
  const [rest, exit] = [text(child.stderr), once(child, 'exit')]
  child.kill('SIGINT')
  t.same(await exit, [null, 'SIGINT'])
  t.equal(await rest, 'Interrupted; nothing was imported.\n')
})

t.test(
  'Ctrl-C in a terminal: the progress shows the time, and the line wrap stays on',
  async (t) => {
    const connection = await newConnection()
    await lock(t, connection.id)
    const command = importInto(connection, rows)
    const child =
      process.platform === 'darwin'
        ? start(['script', '-q', '/dev/null', ...command])
        : start(['script', '-qec', command.join(' '), '/dev/null'])
    await outputOf(child, /Comparing 1 row, [1-9]\d* s/)
    const [rest, exit] = [text(child.stdout), once(child, 'exit')]
    child.stdin.write('\x03')
    await exit
    const shown = await rest
    t.match(shown, /Interrupted; nothing was imported/)
    t.notOk(shown.includes('\x1b[?7l'), 'the line wrap is never turned off')
  },
)

t.test('Long commands in a terminal: each shows what it does, and for how long', async (t) => {
  const connection = await newConnection()
  const folder = t.testdir({ ids: connection.id, lines: `{"connection":"${connection.id}"}` })
  const cases: [string[], string, RegExp][] = [
    [['refresh', join(folder, 'lines')], 'connection', /Refreshing =+ 100 %, 0 lines, 1 s/],
    [
      ['connection', 'delete', '--file', join(folder, 'ids')],
      'connection',
      /Deleting 0 connections, 1 s/,
    ],
    [['verify'], 'portfolio_transaction', /Verifying -+ 0 %, 0 of 6 comparisons, 1 s/],
    [['migrate'], 'kysely_migration', /Migrating 0 migrations applied, 1 s/],
  ]
  const holder = await pool.connect()
  t.teardown(() => holder.release(true))
  for (const [args, table, shown] of cases) {
    await holder.query(`begin; lock table ${table}`)
    const command = [...importInto(connection, rows).slice(0, 3), ...args]
    const child =
      process.platform === 'darwin'
        ? start(['script', '-q', '/dev/null', ...command])
        : start(['script', '-qec', command.join(' '), '/dev/null'])
    const exit = once(child, 'exit')
    t.match(await outputOf(child, shown), shown, args.join(' '))
    await holder.query('rollback')
    await exit
  }
})

t.test('Import in a terminal: the share of the files that is read', async (t) => {
  const many = join(t.testdir(), 'many.ndjson')
  await writeFile(many, Array.from({ length: 200_000 }, (_, id) => portfolioLine(id)).join('\n'))
  const command = importInto(await newConnection(), many)
  const child =
    process.platform === 'darwin'
      ? start(['script', '-q', '/dev/null', ...command])
      : start(['script', '-qec', command.join(' '), '/dev/null'])
  const exit = once(child, 'exit')
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    output += chunk
  })
  await exit
  const drawn = output.matchAll(/\rReading (=*)(-*) (\d+) %, ([\d,]+) rows?, \d+ s/g)
  const shares = Array.from(drawn, ([, done = '', left = '', percent, rows]) => {
    t.equal(done.length + left.length, 40)
    // The percentage is rounded down, so the bar may have one more.
    t.ok([0, 1].includes(done.length - Math.floor(Number(percent) * 0.4)), `${percent} %`)
    t.ok(
      Math.abs(Number(rows?.replaceAll(',', '')) / 200_000 - Number(percent) / 100) < 0.1,
      `${rows} rows`,
    )
    return Number(percent)
  })
  t.ok(
    shares.some((share) => share > 0 && share < 100),
    `${shares}`,
  )
  t.ok(output.includes('\r\x1b[KRead 200000 rows: 200000 inserted'), output.slice(-300))
})

t.test('SIGKILL while an import waits: PostgreSQL ends its session', async (t) => {
  const connection = await newConnection()
  await lock(t, connection.id)
  const child = start(importInto(connection, rows))
  await until('it waits', async () => (await transactions(WRITING)) === 1)
  child.kill('SIGKILL')
  await until('no transaction is left', async () => (await transactions()) === 0, 10_000)
})

t.test('Lost client: PostgreSQL notices it, and waits no longer than a minute', async (t) => {
  const { signal } = new AbortController()
  const settings = await withDatabase(
    url,
    { signal, notice: () => {}, pooler: false },
    async ({ pool }) => {
      const { rows } = await pool.query(
        `select name, setting::integer from pg_settings where source = 'session'
         and name in ('client_connection_check_interval', 'idle_in_transaction_session_timeout')`,
      )
      const { rows: idle } = await pool.query('show tcp_keepalives_idle')
      return [...rows, ...idle]
    },
  )
  t.same(settings, [
    { name: 'client_connection_check_interval', setting: 1_000 },
    { name: 'idle_in_transaction_session_timeout', setting: 60_000 },
    { tcp_keepalives_idle: '30' },
  ])
})

t.test('Session ended by an administrator between two statements: no uncaught error', async (t) => {
  const { signal } = new AbortController()
  const using = withDatabase(url, { signal, notice: () => {}, pooler: false }, ({ db: own }) =>
    own.transaction().execute(async (transaction) => {
      await transaction.selectFrom('app').selectAll().execute()
      await pool.query(
        `select pg_terminate_backend(pid, 5000) from pg_stat_activity
         where datname = current_database() and state = 'idle in transaction'`,
      )
      await transaction.selectFrom('app').selectAll().execute()
    }),
  )
  await t.rejects(using, /terminat|not queryable/)
  t.ok(await db.selectFrom('app').selectAll().execute())
})
