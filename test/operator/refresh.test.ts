import { once } from 'node:events'
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { gzipSync } from 'node:zlib'
import { sql } from 'kysely'
import t from 'tap'
import { verifyRowCounts } from '../../src/operator/verify.ts'
import { openClient } from '../support/database.ts'
import { accountLine, orderLine, portfolioLine, prepareImport, uuid } from '../support/importing.ts'
import { operatorHere, operatorWaits } from '../support/operator-process.ts'
import {
  counts,
  dated,
  details,
  line,
  lockConnection,
  parse,
  type Result,
  refreshing,
  startRefresh,
} from '../support/refreshing.ts'
import { addApp, addCaller, addConnection, addPortfolioTransactions } from '../support/rows.ts'
import { startService } from '../support/service.ts'
import { forward, startTcpProxy } from '../support/tcp-proxy.ts'
import { shortenPauses } from '../support/time.ts'
import { until } from '../support/until.ts'
import { withLengths } from '../support/with-lengths.ts'

const importing = await prepareImport(t)
const { url, db, pool, newConnection, rowCounts, run } = importing
const { fileOf, refreshIn } = refreshing(t)
const refresh = (content: string | Buffer, ...flags: string[]) => refreshIn(url, content, ...flags)

t.test('all lists of a line: written, then unchanged; corrected, with every digit', async (t) => {
  const { get } = await startService(t, { databaseUrl: url })
  const { token, connection } = await addCaller(db)
  const lists = {
    portfolio: [
      portfolioLine(
        1,
        '"amount":1.50,"retentionDetail":{"retentionFrom":1e2,"retentionTo":"0.10"}',
      ),
    ],
    account: [accountLine(1), accountLine(2)],
    orders: [
      orderLine(1),
      orderLine(2, '"completedAt":null'),
      orderLine(3, '"completedAt":"2025-01-01T00:00:00Z"'),
    ],
  }
  const first = await refresh(line(connection, lists))
  t.match(first, { code: 0, stderr: '1 connection refreshed.\n' })
  const { headers, json } = await get(connection.portfolio, { token })
  t.same(first.results, [
    {
      line: 1,
      connection: connection.id,
      dataVersion: headers.get('data-version'),
      portfolioTransactions: counts(1),
      accountTransactions: counts(2),
      transferOrders: counts(3),
    },
  ])
  const shown = (await get(connection.portfolio, { token })).text
  t.match(shown, /"amount":1.50,/)
  t.match(shown, /"retentionFrom":100,"retentionTo":0.10/)
  t.equal(json().items.length, 1)
  t.same(
    (await get(connection.orders, { token }))
      .json()
      .map(({ id }: { id: string }) => id)
      .sort(),
    [uuid(1), uuid(3)],
  )

  const again = await refresh(line(connection, lists))
  t.match(
    again.results,
    withLengths([
      {
        portfolioTransactions: counts(0, 0, 1),
        accountTransactions: counts(0, 0, 2),
        transferOrders: counts(0, 0, 3),
      },
    ]),
  )
  t.equal(again.results[0]?.dataVersion, first.results[0]?.dataVersion)

  const corrected = {
    ...lists,
    portfolio: [portfolioLine(1, '"amount":1.5'), portfolioLine(2)],
    account: [],
  }
  t.match(
    (await refresh(line(connection, corrected))).results,
    withLengths([
      {
        portfolioTransactions: counts(1, 1),
        accountTransactions: counts(0),
        transferOrders: counts(0, 0, 3),
      },
    ]),
  )
  t.match((await get(connection.portfolio, { token })).text, /"amount":1.5,/)
  t.same((await verifyRowCounts(db)).differences, [])
  t.match(await run('portfolio-transactions', connection, corrected.portfolio.join('\n')), {
    unchanged: 2,
  })
})

t.test(
  'hour that sorts wrongly: rejected with its row, unless the row is stored and unchanged',
  async (t) => {
    const connection = await newConnection()
    await addPortfolioTransactions(db, connection, {
      transaction_id: uuid(1),
      portfolio_id: uuid(0),
      operation_date_day: '2024-02-29',
      operation_date_hour: '9:05',
    })
    const odd = (id: number, hour: string) => portfolioLine(id, `"operationDateHour":"${hour}"`)
    const portfolio = [odd(1, '9:05'), odd(2, '10:15'), odd(3, '2:58 PM')]
    const account = [accountLine(1, '"valueDateHour":"9:05"')]
    const refused = await refresh(
      line(connection, { portfolio }) +
        '\n' +
        line(connection, { portfolio: [odd(2, '10:15')], account }),
    )
    t.match(
      refused.results.map(details),
      withLengths([
        [
          'portfolioTransactions: 3: operationDateHour: a time as HH:mm or HH:mm:ss is expected, such as 09:05 or 14:58:40, not "2:58 PM"',
        ],
        [
          'accountTransactions: 1: valueDateHour: a time as HH:mm or HH:mm:ss is expected, such as 09:05 or 14:58:40, not "9:05"',
        ],
      ]),
    )
    t.match(await rowCounts(connection), { portfolio: 1, account: 0 })
    const passed = await refresh(line(connection, { portfolio: portfolio.slice(0, 2) }))
    t.match(passed.results, withLengths([{ portfolioTransactions: counts(1, 0, 1) }]))
  },
)

t.test('changes: a copy follows refreshes', async (t) => {
  const { get } = await startService(t, { databaseUrl: url })
  const { token, connection } = await addCaller(db)
  const read = async (since: string) =>
    (await get(`${connection.portfolio}?since=${since}`, { token })).json()
  const rows = [1, 2, 3].map((id) => portfolioLine(id))
  await refresh(line(connection, { portfolio: rows }))
  const { nextCursor } = await read('start')
  const changed = [portfolioLine(2, '"description":"x"'), portfolioLine(3), portfolioLine(4)]
  const { results } = await refresh(
    line(connection, { portfolio: changed, account: [accountLine(1)], replace: {} }),
  )
  t.match(results, withLengths([{ portfolioTransactions: counts(1, 1, 1, 1) }]))
  const changes = await read(nextCursor)
  t.same(changes.items.map(({ transactionId }: Record<string, string>) => transactionId).sort(), [
    uuid(2),
    uuid(4),
  ])
  t.same(changes.removed, [uuid(1)])
})

t.test(
  'change numbers: the data version after each statement, in one write of a row',
  async (t) => {
    const { url, pool, newConnection } = await prepareImport(t)
    const connection = await newConnection()
    const numbersOf = async (table: string) => {
      const { rows } = await pool.query(`
      select concat_ws('.', change_number >> 31, change_number & 2147483647) as is
      from ${table} order by change_number`)
      return rows.map((row) => row.is)
    }
    const before = [portfolioLine(1), portfolioLine(2), portfolioLine(3)]
    await refreshIn(url, line(connection, { portfolio: before, account: [accountLine(1)] }))
    t.same(await numbersOf('portfolio_transaction'), ['1.1', '1.2', '1.3'])
    t.same(await numbersOf('account_transaction'), ['2.1'])
    const portfolio = [portfolioLine(2, '"description":"x"'), portfolioLine(3), portfolioLine(4)]
    const account = [accountLine(2), accountLine(1, '"description":"x"')]
    const { results } = await refreshIn(url, line(connection, { portfolio, account, replace: {} }))
    t.match(results, withLengths([{ dataVersion: /^7\./ }]))
    t.same(await numbersOf('portfolio_transaction'), ['1.3', '3.3', '4.1'])
    t.same(await numbersOf('account_transaction'), ['6.1', '7.2'])
    // With another number, the triggers would write the row again.
    await until('3 + 3 writes, and 1 + 2', async () => {
      const { rows } = await pool.query(`
      select pg_stat_force_next_flush(), sum(n_tup_ins + n_tup_upd + n_tup_del) as writes
      from pg_stat_all_tables where relname ~ '^(account|portfolio)_transaction(_\\d+)?$'
      group by substring(relname from '^[a-z]+') order by substring(relname from '^[a-z]+')`)
      return rows.map(({ writes }) => writes).join() === '3,6'
    })
  },
)

const LONG = '\\u0041'.repeat(2_700_000)

t.test('a bad line: it changes nothing, and stops no other line', async (t) => {
  const connection = await newConnection()
  const deleted = await newConnection()
  await db.deleteFrom('connection').where('id', '=', deleted.id).execute()
  const good = (id: number) => line(connection, { portfolio: [portfolioLine(id)] })
  const bad: [string | Buffer, RegExp][] = [
    ['{"connection":', /^not valid JSON: Unexpected end of JSON input/],
    ['[]', /^a JSON object is expected/],
    ['{"portfolioTransactions":[]}', /^connection: the field is missing/],
    [`{"connection":${connection.id}}`, /^connection: the id .* in quotes/],
    [line('17', {}), /^connection: the connection 17 does not exist/],
    [line('my-id', {}), /^connection: the connection my-id does not exist/],
    [line('i'.repeat(511), {}), /^connection: the id has more than 510 characters/],
    [
      line(connection, {}).replace('}', ',"replace":{"to":null,"to":null}}'),
      /^replace.to: .* twice/,
    ],
    [
      line(connection, { account: [accountLine(1), accountLine(2, '"amount":1')] }),
      /^accountTransactions.2.amount: the field appears twice/,
    ],
    [
      line(connection, {
        account: [accountLine(1).replace('"amount":1', `"\\u0061mount":"${LONG}"`)],
      }),
      /^accountTransactions: 1: amount: a number .*, not "A{40}…"/,
    ],
    [line(deleted, { orders: [orderLine(1)] }), /^connection: the connection .* does not exist/],
    [line(connection, {}).replace('}', ',"portfolio":[]}'), /^portfolio: there is no such field/],
    [line(connection, {}).replace('}', ',"transferOrders":{}}'), /^transferOrders: an array/],
    [line(connection, { portfolio: ['1'] }), /^portfolioTransactions: 1: a JSON object/],
    [
      line(connection, { account: [accountLine(1), accountLine(2, '"fees":1')] }),
      /^accountTransactions: 2: fees: there is no such field/,
    ],
    [
      line(connection, { portfolio: [portfolioLine(1), portfolioLine(1)] }),
      /^portfolioTransactions: 2: transactionId: duplicate of row 1/,
    ],
    [
      line(connection, { portfolio: [portfolioLine(1)], replace: { from: '2024-03-01' } }),
      /^portfolioTransactions: 1: the effective date 2024-02-29 is outside/,
    ],
    [
      line(connection, { portfolio: [portfolioLine(1)], replace: { to: '2024-02-28' } }),
      /^portfolioTransactions: 1: .* is outside of the replaced range, … to 2024-02-28$/,
    ],
    [line(connection, { replace: { from: '2024-02-30' } }), /^replace.from: an existing day/],
    [line(connection, { replace: { to: 20240201 } }), /^replace.to: an existing day/],
    [line(connection, { replace: { since: null } }), /^replace.since: from, to or yes is expected/],
    [line(connection, { replace: { yes: 'true' } }), /^replace.yes: from, to or yes is expected/],
    [line(connection, { replace: [] }), /^replace: an object is expected, not an array/],
    [
      line(connection, {}).replace('}', ',"replace":"2024-02-01"}'),
      /^replace: an object is expected, not "2024-02-01"/,
    ],
    [
      line(connection, { replace: { from: '2024-02-02', to: '2024-02-01' } }),
      /^replace: from must not/,
    ],
    [Buffer.from(`{"connection":"\xff"}`, 'latin1'), /^the line is not UTF-8/],
  ]
  const all = [good(1), ' \t', ...bad.map(([content]) => content), good(2)]
  const { code, results, stderr } = await refresh(
    Buffer.concat(all.flatMap((content) => [Buffer.from(content), Buffer.from('\n')])),
  )
  t.equal(code, 1)
  t.equal(stderr, `2 connections refreshed, ${bad.length} lines failed.\n`)
  t.match(results[0], { line: 1, portfolioTransactions: counts(1) })
  for (const [index, [, reason]] of bad.entries()) {
    const result = results.find((each) => each.line === index + 3) as Result
    t.match(details(result)[0], reason)
  }
  t.match(results.at(-1), { line: bad.length + 3, portfolioTransactions: counts(1) })
  t.match(await rowCounts(connection), { portfolio: 2, account: 0 })
  const otherForms: [string, RegExp][] = [
    [
      JSON.stringify({ connection }, null, 2),
      /^an object on one line is expected: `jq -c \. FILE`/,
    ],
    [`[${good(3)}]`, /^an object on each line is expected: `jq -c '/],
    [`[${good(3)},\n${good(4)}]`, /^an object on each line is expected: `jq -c '/],
  ]
  for (const [text, advice] of otherForms) {
    const first = (await refresh(text)).results.find((each) => each.line === 1) as Result
    t.match(details(first)[0], advice)
  }
  const cut = await refresh(`${good(3)}\n${good(4).slice(0, -5)}`)
  t.match(
    cut.results,
    withLengths([{ line: 1 }, { line: 2, errors: [{ detail: /JSON: Unterminated string/ }] }]),
  )
})

t.test('replace: rows of the range are removed; more than half only with yes', async (t) => {
  const connection = await newConnection()
  const days = ['2024-01-01', '2024-02-01', '2024-02-02', '2024-02-03']
  const rows = days.map((day, id) => dated(portfolioLine(id), day))
  await refresh(line(connection, { portfolio: rows }))
  const range = { from: '2024-02-01', to: '2024-02-29' }
  const replace = (kept: number[], more = {}) =>
    refresh(
      line(connection, {
        portfolio: kept.map((id) => rows[id] ?? ''),
        replace: { ...range, ...more },
      }),
    )
  t.match(
    (await replace([1, 2])).results,
    withLengths([{ portfolioTransactions: counts(0, 0, 2, 1) }]),
  )
  t.match(details((await replace([])).results[0] as Result), withLengths([/lacks 2 of the 2 rows/]))
  t.match(await rowCounts(connection), { portfolio: 3 })
  t.match(
    (await replace([], { yes: true })).results,
    withLengths([{ portfolioTransactions: counts(0, 0, 0, 2) }]),
  )
  t.match((await replace([])).results, withLengths([{ portfolioTransactions: counts(0) }]))
  t.match(await rowCounts(connection), { portfolio: 1 })
  const none = line(connection, { portfolio: [] }).replace(/}$/, ',"replace":null}')
  t.match((await refresh(none)).results, withLengths([{ portfolioTransactions: counts(0) }]))
  t.match(await rowCounts(connection), { portfolio: 1 }, 'null replaces nothing')
})

t.test('a line that PostgreSQL rejects: its error, and the other lines are written', async (t) => {
  const { url, db, newConnection } = await prepareImport(t)
  const [rejected, other] = [await newConnection(), await newConnection()]
  await sql`create function reject() returns trigger language plpgsql as $$ begin
    if new.connection_id = ${sql.lit(rejected.id)}::bigint then raise 'of the trigger' using errcode = 'ZZ001';
    end if; return new; end $$`.execute(db)
  await sql`create trigger reject before insert on account_transaction
    for each row execute function reject()`.execute(db)
  const lines = [rejected, other].map((each) => line(each, { account: [accountLine(1)] }))
  t.match(
    await refreshIn(url, lines.join('\n')),
    withLengths({
      code: 1,
      results: [
        { line: 1, connection: rejected.id, errors: [{ detail: 'error: of the trigger' }] },
        { line: 2, connection: other.id, accountTransactions: counts(1) },
      ],
      stderr: '1 connection refreshed, 1 line failed.\n',
    }),
  )
})

t.test('a line: its statements take few round trips', async (t) => {
  let roundTrips = 0
  let sender = 'server'
  const through = await startTcpProxy(t, url, (client) =>
    forward(client, url, {
      fromClient: (data, { server }) => {
        if (sender === 'server') roundTrips += 1
        sender = 'client'
        server.write(data)
      },
      fromServer: (data) => {
        sender = 'server'
        client.write(data)
      },
    }),
  )
  const connection = await newConnection()
  const roundTripsOf = async (lines: number) => {
    const rows = (n: number) => ({ portfolio: [portfolioLine(n)], account: [accountLine(n)] })
    const text = Array.from({ length: lines }, (_, n) => line(connection, rows(n))).join('\n')
    roundTrips = 0
    t.equal((await refreshIn(through.href, text, '--jobs', '1')).code, 0)
    return roundTrips
  }
  const [few, many] = [await roundTripsOf(2), await roundTripsOf(42)]
  t.comment(`${few}, ${many}`)
  t.ok(many - few <= 40 * 6, `${(many - few) / 40} for each line`)
})

t.test('several files: each result has its file', async (t) => {
  const connection = await newConnection()
  const first = await fileOf(`\n${line(connection, { portfolio: [portfolioLine(1)] })}`)
  const second = await fileOf(gzipSync('{}\n'))
  const { stdout } = await operatorHere(['refresh', first, second], { DATABASE_URL: url })
  t.match(
    parse(stdout),
    withLengths([
      { file: second, line: 1, errors: [{ field: 'connection' }] },
      { file: first, line: 2, portfolioTransactions: counts(1) },
    ]),
  )
})

t.test('statements of a refresh: generic plans', async (t) => {
  await sql`create table plan_mode (mode text)`.execute(db)
  await sql`create function note_plan_mode() returns trigger language plpgsql as $$
    begin insert into plan_mode values (current_setting('plan_cache_mode')); return null; end $$`.execute(
    db,
  )
  await sql`create trigger note_plan_mode after insert on portfolio_transaction
    for each statement execute function note_plan_mode()`.execute(db)
  t.teardown(() => sql`drop function note_plan_mode cascade; drop table plan_mode`.execute(db))
  const rows = line(await newConnection(), { portfolio: [portfolioLine(1)] })
  t.match(await refresh(rows), { code: 0 })
  const modes = await sql`select distinct mode from plan_mode`.execute(db)
  t.same(modes.rows, [{ mode: 'force_generic_plan' }])
})

t.test('gzip: read; blank lines that expand without end: rejected', async (t) => {
  const connection = await newConnection()
  const rows = line(connection, { portfolio: [portfolioLine(1)] })
  t.match(
    await refresh(gzipSync(rows)),
    withLengths({
      code: 0,
      results: [{ portfolioTransactions: counts(1) }],
    }),
  )
  const expanding = await refresh(gzipSync(Buffer.alloc(8 * 2 ** 20, '\n')))
  t.match(expanding, { code: 1, stdout: '', stderr: /expands to more than 200 times its size/ })
})

t.test('--app: its connections only, also by their external ids', async (t) => {
  const [appId, other] = [await addApp(db, { name: 'own' }), await addApp(db)]
  const [own, foreign] = [await addConnection(db, appId), await addConnection(db, other)]
  await sql`update connection set external_id = 'customer 1' where id in (${own.id}, ${foreign.id})`.execute(
    db,
  )
  await sql`update connection set external_id = 'customer 2' where id = ${foreign.id}`.execute(db)
  const lists = { account: [accountLine(1)] }
  const lines = ['customer 1', own.id, 'customer 2', foreign.id].map((name) => line(name, lists))
  const withNul = await refresh('{"connection":"a\\u0000"}', '--app', 'own')
  t.match(
    details(withNul.results[0] as Result),
    withLengths([/^connection: the connection a\0 does not exist/]),
  )
  const { results } = await refresh(lines.join('\n'), '--app', 'own', '--jobs', '1')
  t.match(
    results,
    withLengths([
      { connection: 'customer 1', accountTransactions: counts(1) },
      { accountTransactions: counts(0, 0, 1) },
      { errors: [{ field: 'connection' }] },
      { errors: [{ field: 'connection' }] },
    ]),
  )
  t.match(await refresh('', '--app', 'none'), { code: 1, stderr: /There is no app none/ })
})

t.test('unchanged: no catalog row, no row but the time', async (t) => {
  // Sessions of other tests count their writes later.
  const { url, pool, newConnection } = await prepareImport(t)
  const connection = await newConnection()
  const content = Array.from({ length: 50 }, () =>
    line(connection, { portfolio: [portfolioLine(1)] }),
  )
  await refreshIn(url, content[0] ?? '')
  const writes = async () => {
    const { rows } = await pool.query(`
      select pg_stat_force_next_flush(), regexp_replace(relname, '_\\d+$', '') as relname,
        sum(n_tup_ins + n_tup_upd + n_tup_del) as writes
      from pg_stat_all_tables where n_tup_ins + n_tup_upd + n_tup_del > 0 group by 2`)
    return new Map<string, number>(rows.map(({ relname, writes: n }) => [relname, Number(n)]))
  }
  // A session that has ended may count its writes later.
  await until('the first row is counted', async () => (await writes()).has('portfolio_transaction'))
  const before = await writes()
  const warnings: Error[] = []
  const onWarning = (warning: Error) => warnings.push(warning)
  process.on('warning', onWarning)
  await refreshIn(url, content.join('\n'))
  process.off('warning', onWarning)
  t.same(warnings, [], 'no listener of a line remains')
  await until('the writes are counted', async () => {
    return ((await writes()).get('connection') ?? 0) >= (before.get('connection') ?? 0) + 50
  })
  const after = await writes()
  for (const name of ['portfolio_transaction', 'pg_class', 'pg_attribute', 'pg_type'])
    t.equal(after.get(name), before.get(name), name)
})

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  t.test(`${signal}: the lines in progress are finished and reported`, async (t) => {
    const { locked, free, holder } = await lockConnection(t, importing)
    const { child, results } = startRefresh(url, '--jobs', '2')
    child.stdin.write(`${line(locked, { account: [accountLine(1)] })}\n`)
    child.stdin.write(`${line(locked, { account: [accountLine(2)] })}\n`)
    child.stdin.write(`${line(free, { account: [accountLine(1)] })}\n`)
    await until('the free line is done', () => results.length === 1)
    const exit = once(child, 'exit')
    child.kill(signal)
    // Nothing shows when the command has received the signal.
    await sleep(1_000)
    await holder.query('commit')
    t.same(await exit, [null, signal])
    t.same(
      results.map((result) => result.line),
      [3, 1],
    )
    t.match(await rowCounts(locked), { account: 1 })
  })
}

t.test('a lost session: the line is sent again', async (t) => {
  const connection = await newConnection()
  const { child, results } = startRefresh(url, '--jobs', '1')
  for (let number = 1; number <= 5; number += 1) {
    child.stdin.write(`${line(connection, { account: [accountLine(number)] })}\n`)
    await until('the line is done', () => results.length === number)
    await pool.query(
      `select pg_terminate_backend(pid, 5000) from pg_stat_activity
       where application_name = 'investment-data-operator' and datname = current_database()`,
    )
  }
  child.stdin.end()
  t.same(await once(child, 'exit'), [0, null])
  t.match(await rowCounts(connection), { account: 5 })
  t.same(
    results.map((result) => result.errors),
    Array(5).fill(undefined),
  )
})

t.test('a refresh that waits for its input: sends nothing on its idle session', async (t) => {
  const { child } = startRefresh(url, '--jobs', '1')
  t.teardown(() => child.kill())
  const exit = once(child, 'exit')
  const sessions = async () => {
    const { rows } = await pool.query<{ pid: number; state: string; query: string; at: string }>(
      `select pid, state, query, query_start::text as at from pg_stat_activity
       where application_name = 'investment-data-operator' and datname = current_database() order by pid`,
    )
    return rows
  }
  await until('a session has read whether the database has Citus', async () =>
    (await sessions()).some(
      ({ state, query }) => state === 'idle' && query.includes('pg_extension'),
    ),
  )
  // A role with one connection needs it for the next statement.
  await until('the sessions get no statement', async () => {
    const before = await sessions()
    await sleep(1_000)
    const after = await sessions()
    return isDeepStrictEqual(before, after)
  })
  child.stdin.end()
  t.same(await exit, [0, null])
})

t.test('a server that accepts its first session slowly: no other session is opened', async (t) => {
  const clients: Socket[] = []
  const proxy = await startTcpProxy(t, url, (client) => clients.push(client))
  const { child } = startRefresh(proxy.href, '--jobs', '1')
  t.teardown(() => child.kill())
  const exit = once(child, 'exit')
  await until('it connects', () => clients.length > 0)
  // A role with one connection needs it for the command.
  await sleep(1_000)
  t.equal(clients.length, 1)
  for (const client of clients) forward(client, url)
  child.stdin.end()
  t.same(await exit, [0, null])
})

t.test('a role with one connection, and 4 sessions: each line is written', async (t) => {
  const connections = await Promise.all(Array.from({ length: 12 }, newConnection))
  const { username: owner } = new URL(url)
  const login = Object.assign(new URL(url), { username: `limited_${process.pid}`, password: 'one' })
  await pool.query(
    `create role ${login.username} in role ${owner} login password 'one' connection limit 1`,
  )
  t.teardown(() => pool.query(`drop role ${login.username}`))
  const lines = connections.map((connection) => line(connection, { account: [accountLine(1)] }))
  shortenPauses(t, 20)
  const { code, stderr, results } = await refreshIn(login.href, lines.join('\n'))
  t.equal(code, 0)
  t.match(
    stderr,
    'PostgreSQL has no free connection: try again later. Trying again until it responds.',
  )
  t.match(stderr, '12 connections refreshed.')
  for (const result of results) t.match(result, { accountTransactions: { inserted: 1 } })
})

t.test('a login that is rejected for good: the refresh ends', async (t) => {
  const connection = await newConnection()
  const { username: owner } = new URL(url)
  const login = Object.assign(new URL(url), { username: `leaving_${process.pid}`, password: 'one' })
  await pool.query(`create role ${login.username} in role ${owner} login password 'one'`)
  t.teardown(() => pool.query(`drop role ${login.username}`))
  const holder = await openClient(t, url)
  await holder.query('begin')
  await holder.query('select from connection where id = $1 for update', [connection.id])
  shortenPauses(t, 100)
  const ended = refreshIn(login.href, line(connection, { account: [accountLine(1)] }))
  await operatorWaits(db)
  await pool.query(`alter role ${login.username} nologin`)
  await pool.query('select pg_terminate_backend(pid) from pg_stat_activity where usename = $1', [
    login.username,
  ])
  t.match(await ended, { code: 1, stdout: '', stderr: /PostgreSQL rejects this user/ })
  await holder.query('rollback')
})

t.test('a deadlock, or a concurrent update: the line is repeated at once', async (t) => {
  const { url, pool, newConnection, rowCounts } = await prepareImport(t)
  await pool.query('create sequence attempt')
  for (const state of ['40P01', '40001']) {
    const connection = await newConnection()
    // A sequence keeps its number when the transaction is rolled back.
    await pool.query(`
      alter sequence attempt restart;
      create or replace function end_first() returns trigger language plpgsql as $$ begin
        if nextval('attempt') = 1 then raise 'ended' using errcode = '${state}'; end if;
        return null; end $$;
      create or replace trigger end_first before insert on account_transaction
        execute function end_first()`)
    const input = line(connection, { account: [accountLine(1)] })
    const { code, results } = await refreshIn(url, input)
    t.equal(code, 0, state)
    t.match(results, withLengths([{ accountTransactions: { inserted: 1 } }]))
    t.match(await rowCounts(connection), { account: 1 })
    t.equal((await pool.query('select last_value from attempt')).rows[0].last_value, '2')
  }
})

t.test('a reader of the results that ends: the refresh ends', async (t) => {
  const connection = await newConnection()
  const { child, stderr, closed } = startRefresh(url)
  child.stdout.destroy()
  child.stdin.write(`${line(connection, { orders: [orderLine(1)] })}\n`)
  t.same(await closed, { code: 1, signal: null })
  t.match(stderr(), /The reader of the results has ended/)
})
