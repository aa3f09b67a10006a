import { readFile } from 'node:fs/promises'
import type { Socket } from 'node:net'
import type pg from 'pg'
import t, { type Test } from 'tap'
import { connect as connectWire } from '../../src/postgres/connect.ts'
import { Database } from '../../src/postgres/database.ts'
import { hasState, SqlState } from '../../src/postgres/failures.ts'
import type { Parameter } from '../../src/postgres/statements.ts'
import type { WireClient } from '../../src/postgres/wire/client.ts'
import { RawQuery, RawRows } from '../../src/postgres/wire/query.ts'
import { anyText } from '../support/awkward-rows.ts'
import { createDatabase, openClient, readerOf } from '../support/database.ts'
import { fc, runs } from '../support/random.ts'
import { forward, startTcpProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'

/** The wire client against plain pg: the same statements have the same rows and errors. */

type Rows = (string | null)[][]
interface Query {
  text: string
  values: string[]
  /** Prepares the statement under this name; empty leaves it unnamed. */
  name: string
  /** Sends it as a raw query, and not through pg's own query class. */
  raw: boolean
}
type Result = { rows: Rows } | { error: string }

const noted = `create function noted(n integer) returns text language plpgsql as
  $$ begin raise notice 'row %', n; return repeat('n', n); end $$`

const { url } = await createDatabase(t)
const plain = await openClient(t, url)
await plain.query(noted)

const text = fc
  .tuple(anyText(12), fc.constantFrom(1, 1, 1, 2, 700))
  .map(([unit, times]) => unit.repeat(times))
const decimal = fc
  .tuple(
    fc.bigInt({ min: 1n - 10n ** 38n, max: 10n ** 38n - 1n }),
    fc.bigInt({ max: 10n ** 38n - 1n, min: 0n }),
  )
  .map(([whole, fraction]) => `${whole}.${String(fraction).padStart(38, '0')}`)
const usualRow = fc.record({ a: fc.option(text), b: fc.option(decimal), c: fc.option(text) })
const longRow = fc
  .tuple(fc.constantFrom('x', 'é', '€', '😀'), fc.integer({ min: 0, max: 75_000 }))
  .map(([unit, times]) => ({ a: unit.repeat(times), b: null, c: '' }))
/** Up to 2,000 rows, of a few bytes to 300 KB. */
const table = fc.oneof(
  fc
    .tuple(fc.array(usualRow, { maxLength: 20 }), fc.constantFrom(1, 1, 1, 10, 100))
    .map(([rows, times]) => Array.from({ length: times }, () => rows).flat()),
  fc.array(fc.oneof(usualRow, longRow), { maxLength: 4 }),
)
const TABLE = 'select * from json_to_recordset($1::json) as row (a text, b numeric, c text)'

t.test('any rows: the same fields as plain pg', async (t) => {
  const client = await openWire(t, url)
  await fc.assert(
    fc.asyncProperty(table, fc.constantFrom('', 'table'), async (rows, name) => {
      const query = { text: TABLE, values: [JSON.stringify(rows)], name, raw: true }
      same(await run(client, query), await run(plain, { ...query, raw: false }))
    }),
    { numRuns: runs(60) },
  )
})

t.test('no column: as many rows as plain pg', async (t) => {
  const client = await openWire(t, url)
  const query = { text: 'select from generate_series(1, 3)', values: [], name: '' }
  t.same(await run(client, { ...query, raw: true }), { rows: [[], [], []] })
  t.same(await run(plain, { ...query, raw: false }), { rows: [[], [], []] })
})

const count = fc.nat(6).map(String)
/** Statements with a result, with notices, and with an error at parse, bind and execution time. */
const statement = fc.oneof(
  table.map((rows) => ({ text: TABLE, values: [JSON.stringify(rows.slice(0, 50))] })),
  fc.record({
    text: fc.constantFrom(
      'select n, repeat(chr(96 + n), n * n) from generate_series(1, $1::integer) as n',
      'select noted(n) from generate_series(1, $1::integer) as n',
      'select n, 12 / (4 - n) from generate_series(1, $1::integer) as n',
      'select n, noted(12 / (4 - n)) from generate_series(1, $1::integer) as n',
    ),
    values: fc.tuple(count),
  }),
  fc.record({
    text: fc.constantFrom('select n from generate_series(1, 5) as n', 'select null', 'select 1/0'),
    values: fc.constant<string[]>([]),
  }),
  fc.record({
    text: fc.constantFrom('select $1::integer', 'select $1::date'),
    values: fc.tuple(fc.constant('not this')),
  }),
  fc.record({
    text: fc.constantFrom('select $1::text from no_such_table', 'selec $1'),
    values: fc.tuple(fc.constant('')),
  }),
)
/** A name belongs to one statement, and one that cannot be parsed leaves no prepared statement. */
const nameOf = (text: string, named: boolean) =>
  named && !/no_such_table|^selec /.test(text) ? text.slice(0, 63) : ''
const query: fc.Arbitrary<Query> = fc
  .tuple(statement, fc.boolean(), fc.boolean())
  .map(([{ text, values }, named, raw]) => ({ text, values, name: nameOf(text, named), raw }))
const pipeline = fc.array(query, { minLength: 1, maxLength: 12 })

t.test('raw and plain queries in one pipeline: each gets what it gets alone', async (t) => {
  const client = await openWire(t, url)
  await fc.assert(
    fc.asyncProperty(pipeline, (queries) => compare(client, queries)),
    { numRuns: runs(100) },
  )
})

t.test('queries that are sent together: in one packet', async (t) => {
  const client = await openWire(t, url)
  const { stream } = client.connection
  client.sendTogether((expected) => t.equal(stream.writableCorked, expected), 1)
  t.equal(stream.writableCorked, 0)
  const fail = () => {
    throw new Error('no query')
  }
  t.throws(() => client.sendTogether(fail, undefined), { message: 'no query' })
  t.equal(stream.writableCorked, 0, 'also after an error')
})

t.test('a stream in pieces of any size: the same results', async (t) => {
  const proxy = await startProxy(t)
  const client = await openWire(t, proxy.url)
  const sizes = fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 20 })
  await fc.assert(
    fc.asyncProperty(pipeline, sizes, fc.constantFrom(1, 1, 40, 2_000), (queries, some, factor) => {
      const usual = queries.filter(({ values }) => (values[0] ?? '').length < 500 * factor)
      proxy.sizes = some.map((size) => size * factor)
      return compare(client, usual)
    }),
    { numRuns: runs(60) },
  )
})

t.test('a stream byte by byte: the same results', async (t) => {
  const proxy = await startProxy(t)
  const client = await openWire(t, proxy.url)
  proxy.sizes = [1]
  const texts = [
    'select n, repeat(chr(96 + n), n * n) from generate_series(1, 6) as n',
    'select noted(n) from generate_series(1, 6) as n',
    'select 12 / (4 - n) from generate_series(1, 6) as n',
    'select null, 1',
  ]
  const queries = texts.flatMap((text) =>
    [true, false, true].map((raw) => ({ text, values: [], name: '', raw })),
  )
  await compare(client, queries)
})

t.test('a connection cut at any byte: a query fails or has all its rows', async (t) => {
  const proxy = await startProxy(t)
  const sent = Array.from({ length: 3 }, (_, n) => ({
    text: 'select n, repeat(chr(96 + n), 20 * n) from generate_series(1, 4) as n',
    values: [],
    name: n === 0 ? '' : 'rows',
    raw: true,
  }))
  const expected = await run(plain, { ...(sent[0] as Query), name: '', raw: false })
  const whole = await openWire(t, proxy.url)
  proxy.cutAfter(Number.POSITIVE_INFINITY)
  await Promise.all(sent.map((query) => run(whole, query)))
  const total = proxy.forwarded()
  await fc.assert(
    fc.asyncProperty(fc.nat(total - 1), async (bytes) => {
      proxy.cutAfter(Number.POSITIVE_INFINITY)
      const client = await openWire(t, proxy.url)
      proxy.cutAfter(bytes)
      const results = await Promise.all(sent.map((query) => run(client, query)))
      for (const result of results) if ('rows' in result) same(result, expected)
      // The last message is ReadyForQuery, of six bytes: without it, the rows are complete.
      if (bytes < total - 6) t.hasProp(results.at(-1) as Result, 'error')
      t.hasProp(await run(client, sent[0] as Query), 'error')
    }),
    { numRuns: runs(80), examples: [[0], [total - 7], [total - 6]] },
  )
})

t.test('a broken connection: queries in flight and later ones fail once', async (t) => {
  const client = await openWire(t, url)
  let ends = 0
  const ended = new Promise<Error | undefined>((resolve) => {
    const values: Parameter[] = []
    const sleep = { name: '', title: '', text: 'select pg_sleep(30)' }
    client.query(
      new RawQuery(sleep, values, new RawRows(), (error) => {
        ends += 1
        resolve(error)
      }),
    )
  })
  client.destroy(new Error('closed by the test'))
  t.match(await ended, { message: 'closed by the test' })
  const later = await run(client, { text: 'select 1', values: [], name: '', raw: true })
  t.match(later, { error: /not queryable/ })
  t.equal(ends, 1)
})

t.test('no SELECT: the query fails, the others do not', async (t) => {
  const client = await openWire(t, url)
  const raw = (text: string) => ({ text, values: [], name: '', raw: true })
  const texts = [
    '',
    'set work_mem = 64',
    'copy pg_class to stdout',
    'copy account_transaction from stdin',
    'copy account_transaction from stdin',
  ]
  const queries = texts.flatMap((text) => [raw(text), raw('select 1')])
  const results = await together(client, queries)
  for (const [n, result] of results.entries()) {
    if (n % 2 === 1) t.same(result, { rows: [['1']] }, `behind ${texts[(n - 1) / 2]}`)
    else t.hasProp(result, 'error', `${texts[n / 2]}`)
  }
})

const OWN_PROCESS = {
  name: 'own process',
  title: 'own process',
  text: 'select pg_backend_pid()::text',
}

t.test('a lost prepared statement: RawQuery reports it, and runs it unnamed', async (t) => {
  const client = await openWire(t, url)
  const named = { ...OWN_PROCESS, values: [], raw: true }
  const first = await run(client, named)
  await client.query('deallocate all')
  const lost = await new Promise<Error | undefined>((resolve) =>
    client.query(new RawQuery(OWN_PROCESS, [], new RawRows(), resolve)),
  )
  t.ok(hasState(lost, SqlState.lostPlan), 'error 26000')
  t.same(await run(client, { ...named, name: '' }), first)
})

t.test('a lost prepared statement: the pipeline repeats it unnamed, then reconnects', async (t) => {
  await plain.query(`create function lose_statements() returns void language plpgsql as
    $$ begin execute 'deallocate all'; end $$`)
  const options = { statementTimeoutMs: 5_000, pooler: false }
  const db = new Database({ url, size: 1, ...options })
  t.teardown(() => db.close())
  const ownProcess = async () => (await db.read(OWN_PROCESS, [], readerOf())).shift()
  const first = await ownProcess()
  await db.read({ name: '', title: '', text: 'select lose_statements()' }, [], readerOf())
  t.same(await ownProcess(), first)
  t.notSame(await ownProcess(), first)
})

/** Checks that a pipeline has the results and notices that plain pg has, one query after the other. */
async function compare(client: WireClient, queries: Query[]): Promise<void> {
  const notices = collectNotices(client)
  const results = await together(client, queries)
  const plainNotices = collectNotices(plain)
  const expected: Result[] = []
  for (const query of queries) expected.push(await run(plain, { ...query, raw: false }))
  same(results, expected)
  same(notices(), plainNotices())
}

function collectNotices(client: pg.ClientBase): () => (string | undefined)[] {
  const notices: (string | undefined)[] = []
  const listener = ({ message }: { message: string | undefined }) => notices.push(message)
  client.on('notice', listener)
  return () => {
    client.off('notice', listener)
    return notices
  }
}

function same(result: unknown, expected: unknown): void {
  const [a, b] = [JSON.stringify(result), JSON.stringify(expected)]
  if (a !== b) throw new Error(`${a.slice(0, 1_000)}\ninstead of ${b.slice(0, 1_000)}`)
}

function together(client: WireClient, queries: Query[]): Promise<Result[]> {
  const results: Promise<Result>[] = []
  client.sendTogether((all) => {
    for (const query of all) results.push(run(client, query))
  }, queries)
  return Promise.all(results)
}

function run(client: pg.ClientBase, { raw, ...query }: Query): Promise<Result> {
  const rows = raw ? rawRows(client, query) : plainRows(client, query)
  return rows.then(
    (rows) => ({ rows }),
    (error: Error & { code?: string }) => ({ error: `${error.code} ${error.message}` }),
  )
}

function rawRows(client: pg.ClientBase, query: Omit<Query, 'raw'>): Promise<Rows> {
  const rows = new RawRows()
  return new Promise((resolve, reject) =>
    client.query(
      new RawQuery({ ...query, title: query.name }, query.values, rows, (error) => {
        if (error) reject(error)
        else resolve(Array.from({ length: rows.count }, () => rows.shift() as Rows[number]))
      }),
    ),
  )
}

async function plainRows(
  client: pg.ClientBase,
  { text, values, name }: Omit<Query, 'raw'>,
): Promise<Rows> {
  const types = { getTypeParser: () => (field: string) => field }
  const config = { text, values, types: types as pg.CustomTypesConfig, rowMode: 'array' as const }
  const { rows } = await client.query<(string | null)[]>({ ...config, ...(name ? { name } : {}) })
  return rows
}

/** Opens a connection as the service does, closed at teardown. */
async function openWire(t: Test, url: string): Promise<WireClient> {
  const options = { statementTimeoutMs: 20_000, pooler: false }
  const client = await connectWire({ url, ...options })
  t.teardown(() => client.destroy())
  return client
}

/** Starts a proxy that cuts the stream of the server into pieces, or off. Closed at teardown. */
async function startProxy(t: Test) {
  const proxy = {
    /** Sizes of the pieces in bytes, used in turn; empty for whatever the server sends at once. */
    sizes: [] as number[],
    url: '',
    /** Breaks the connection after these bytes of the server, counted from now. */
    cutAfter: (bytes: number) => {
      left = bytes
      forwarded = 0
    },
    forwarded: () => forwarded,
  }
  let left = Number.POSITIVE_INFINITY
  let forwarded = 0
  let piece = 0
  const forwardPieces = async (client: Socket, chunk: Buffer) => {
    for (let at = 0; at < chunk.length && left > 0; piece += 1) {
      const { sizes } = proxy
      const size = sizes[piece % sizes.length] ?? chunk.length
      const part = chunk.subarray(at, at + Math.min(size, left))
      at += part.length
      forwarded += part.length
      left -= part.length
      client.write(part)
      // The client reads each piece by itself.
      if (sizes.length > 0) await new Promise(setImmediate)
    }
    if (left === 0) client.end()
  }
  const through = await startTcpProxy(t, url, (client) => {
    let queue = Promise.resolve()
    const fromServer = (chunk: Buffer) => {
      queue = queue.then(() => forwardPieces(client, chunk))
    }
    const { server } = forward(client, url, { fromServer, ends: () => false })
    client.on('close', () => server.destroy())
    server.on('close', () => queue.then(() => client.end()))
  })
  proxy.url = through.href
  return proxy
}

t.test('a damaged stream', async (t) => {
  const { url } = await createDatabase(t)
  const echo = {
    name: 'echo',
    title: 'echo',
    text: 'select $1::text || generate_series(1, $2::int)',
  }
  /** The DataRow message with one field of two bytes. */
  const rowOf = (text: string) => Buffer.from(`D\0\0\0\x0c\0\x01\0\0\0\x02${text}`, 'latin1')

  /** Opens the database through a proxy that replaces bytes of the server. */
  async function openThrough(t: Test, bytes: Buffer, replacement: Buffer) {
    const through = await startTcpProxy(t, url, (client) =>
      forward(client, url, {
        fromServer: (data) => {
          const at = data.indexOf(bytes)
          if (at < 0) return client.write(data)
          const parts = [data.subarray(0, at), replacement, data.subarray(at + bytes.length)]
          return client.write(Buffer.concat(parts))
        },
      }),
    )
    const limits = { size: 2, statementTimeoutMs: 20_000, pooler: false }
    const db = new Database({ ...limits, url: through.href })
    t.teardown(() => db.close())
    const read = async (values: string[]) => {
      const rows = await db.read(echo, values, readerOf())
      return Array.from({ length: rows.count }, () => rows.shift()?.[0])
    }
    return { read, port: Number(through.port) }
  }

  t.test('lost row: the read fails, and the next one succeeds', async (t) => {
    const { read } = await openThrough(t, rowOf('a2'), Buffer.alloc(0))
    const message = 'the rows of a response did not all arrive'
    await t.rejects(read(['a', '3']), { name: 'ServerFailed', cause: { message } })
    t.same(await read(['b', '3']), ['b1', 'b2', 'b3'])
  })

  t.test(
    'message of an impossible length: the read fails, and the next one succeeds',
    async (t) => {
      const damaged = rowOf('a2')
      damaged.writeInt32BE(2, 1)
      const { read } = await openThrough(t, rowOf('a2'), damaged)
      const message = 'the server sent a message that is not PostgreSQL'
      await t.rejects(read(['a', '3']), { name: 'ServerFailed', cause: { message } })
      t.same(await read(['b', '3']), ['b1', 'b2', 'b3'])
    },
  )

  t.test('connection without traffic: TCP keep-alive is on', async (t) => {
    const { read, port } = await openThrough(t, rowOf('a2'), rowOf('a2'))
    await read(['b', '1'])
    // Lines of Linux: local address, remote address, state, queues, and `02:` for a keep-alive timer.
    const remote = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
    const timer = new RegExp(`${remote} 01 [0-9A-F:]+ 02:`)
    await until('the kernel has a keep-alive timer', async () =>
      timer.test(await readFile('/proc/net/tcp', 'utf8')),
    )
  })
})
