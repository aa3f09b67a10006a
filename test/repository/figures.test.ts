/** Figures of the pages for users that are constants of the code, or that one can compute. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { DEMO } from '../../seeds/sample-data.ts'
import { settings } from '../../src/config.ts'

const read = (path: string) => readFileSync(path, 'utf8')
/** The text of a page, without its line breaks. */
const textOf = (page: string) => read(page).replaceAll(/\s+/g, ' ')

const WORDS: Record<number, string> = {
  1: 'one',
  2: 'two',
  3: 'three',
  6: 'six',
  10: 'ten',
}
const word = (figure: number) => WORDS[figure] ?? String(figure)
const grouped = (figure: number) => figure.toLocaleString('en')
const seconds = (ms: number) => ms / 1_000
const MIB = 2 ** 20

interface Source {
  /** File with the constant. */
  file: string
  /** Its only group is the figure, or factors of it. */
  constant: RegExp
  /** What each page says. */
  says: Record<string, (figure: number) => string>
}

const CONSTANTS: Source[] = [
  {
    file: 'src/http/http-server.ts',
    constant: /^const REQUEST_TIMEOUT_MS = (\S+)$/m,
    says: {
      'docs/settings.md': (ms) => `| ${seconds(ms)} s for a request |`,
      'docs/proxy.md': (ms) => `| 400 after ${word(seconds(ms))} seconds |`,
    },
  },
  {
    file: 'src/http/http-server.ts',
    constant: /^const STALL_MS = (\S+)$/m,
    says: {
      'docs/settings.md': (ms) => `| ${seconds(ms)} s without progress`,
      'docs/proxy.md': (ms) => `after ${word(seconds(ms) / 60)} minutes without progress`,
      'src/http/openapi/guide.md': (ms) =>
        `the service resets the connection after ${word(seconds(ms) / 60)} minutes`,
    },
  },
  {
    file: 'src/http/http-server.ts',
    constant: /^const MAX_HEADER_BYTES = (\S+)$/m,
    says: {
      'docs/settings.md': (bytes) => `| ${bytes / 1_024} KiB of request line and headers |`,
      'docs/proxy.md': (bytes) => `| 400 above ${bytes / 1_024} KiB |`,
    },
  },
  {
    file: 'src/http/http-server.ts',
    constant: /keepAliveTimeout: (\S+),$/m,
    says: {
      'docs/settings.md': (ms) => `| ${seconds(ms)} s keep-alive |`,
      'docs/proxy.md': (ms) => `before the service does (${seconds(ms)} seconds)`,
    },
  },
  {
    file: 'src/http/sockets.ts',
    constant: /^export const MAX_SOCKETS = (\S+)$/m,
    says: { 'docs/settings.md': (connections) => `| ${connections} client connections |` },
  },
  {
    file: 'src/postgres/connect.ts',
    constant: /lock_timeout: Math.ceil\(statementTimeoutMs \/ (5)\)/,
    says: { 'docs/settings.md': () => 'for at most a fifth of this time' },
  },
  {
    file: 'src/postgres/connect.ts',
    constant: /^export const CONNECT_MS = (\S+)$/m,
    says: {
      'docs/recovery.md': (ms) => `has not opened for ${word(seconds(ms))} seconds`,
    },
  },
  {
    file: 'src/postgres/server.ts',
    constant: /^const LARGE_SHARE = (0.1)$/m,
    says: { 'docs/settings.md': () => 'One in ten of them' },
  },
  {
    file: 'src/postgres/server.ts',
    constant: /^const LEAST_LARGE = (\S+)$/m,
    says: {
      'docs/settings.md': (large) =>
        `${large + 1} at least. One in ten of them, at least ${word(large)},`,
    },
  },
  {
    file: 'src/postgres/reader.ts',
    constant: /^const SMALL_SKIPPED = (\S+)$/m,
    says: { 'docs/README.md': (rows) => `A page that skips more than ${grouped(rows)} rows` },
  },
  {
    file: 'src/schemas/list.ts',
    constant: /^export const DEFAULT_LIMIT = (\S+)$/m,
    says: { 'docs/README.md': (rows) => `a block of an export, more than ${grouped(rows)} rows,` },
  },
  {
    file: 'src/http/log.ts',
    constant: /^const MAX_WAITING = (.+)$/m,
    says: { 'docs/observability.md': (bytes) => `${bytes / MIB} MiB of lines waits` },
  },
  {
    file: 'src/telemetry/tracing.ts',
    constant: /^const SHUTDOWN_MS = (\S+)$/m,
    says: { 'docs/observability.md': (ms) => `waits for it up to ${word(seconds(ms))} seconds` },
  },
  {
    file: 'src/http/identity-provider.ts',
    constant: /keys\.reload\(\)\.catch\(report\), (\w+)\)/,
    says: { 'docs/credentials.md': (ms) => `every ${word(seconds(ms) / 60)} minutes` },
  },
  {
    file: 'src/http/identity-provider.ts',
    constant: /^const clockTolerance = (\S+)$/m,
    says: { 'docs/credentials.md': (time) => `a tolerance of ${word(time)} seconds` },
  },
  {
    file: 'src/http/identity-provider.ts',
    constant: /timeoutDuration: (\S+),$/m,
    says: { 'docs/credentials.md': (ms) => `A fetch takes at most ${word(seconds(ms))} seconds` },
  },
  {
    file: 'src/http/identity-provider.ts',
    constant: /cooldownDuration: (\S+),$/m,
    says: { 'docs/credentials.md': (ms) => `at most once in ${word(seconds(ms))} seconds` },
  },
  {
    file: 'src/http/identity-provider.ts',
    constant: /cacheMaxAge: (\S+),$/m,
    says: {
      'docs/credentials.md': (ms) =>
        `the known keys remain valid for ${word(seconds(ms) / 86_400)} day`,
    },
  },
  {
    file: 'src/http/identity-provider.ts',
    constant: /^const CACHED_FOR_MS = (\S+)$/m,
    says: {
      'docs/credentials.md': (ms) =>
        `and ${word(seconds(ms) / 60)} minute in which the service keeps`,
    },
  },
  {
    file: 'docs/proxy.md',
    constant: /sc0_conn_cur gt (\d+) /,
    says: { 'docs/proxy.md': (connections) => `Closes connections above ${connections} at once` },
  },
  {
    file: 'docs/proxy.md',
    constant: /sc0_conn_rate gt (\d+) /,
    says: { 'docs/proxy.md': (connections) => `or ${grouped(connections)} in ten seconds` },
  },
  {
    file: 'docs/proxy.md',
    constant: /sc0_http_req_rate gt (\d+) /,
    says: { 'docs/proxy.md': (requests) => `Above ${grouped(requests)} requests or` },
  },
  {
    file: 'docs/proxy.md',
    constant: /sc0_http_err_rate gt (\d+) /,
    says: { 'docs/proxy.md': (responses) => `or ${responses} responses with 4xx` },
  },
  {
    file: 'docs/proxy.md',
    constant: /timeout tarpit (\d+)s$/m,
    says: { 'docs/proxy.md': (time) => `429, ${word(time)} seconds later` },
  },
  {
    file: 'docs/proxy.md',
    constant: /timeout http-request (\d+)s /,
    says: { 'docs/proxy.md': (time) => `| 408 after ${word(time)} seconds |` },
  },
  {
    file: 'docs/proxy.md',
    constant: /timeout http-keep-alive (\d+)s /,
    says: { 'docs/settings.md': (time) => `Proxies close idle connections first (${time} s)` },
  },
  {
    file: 'src/operator/loading/refresh.ts',
    constant: /^const MAXIMUM_LINE_BYTES = (.+)$/m,
    says: { 'docs/importing.md': (bytes) => `A line has at most ${bytes / MIB} MiB, and` },
  },
  {
    file: 'src/operator/loading/refresh-parser.ts',
    constant: /^const MOST_VALUES = (\S+)$/m,
    says: { 'docs/importing.md': (values) => `and ${grouped(values)} objects and arrays` },
  },
  {
    file: 'src/operator/loading/source.ts',
    constant: /^export const MAXIMUM_LINE_BYTES = (.+)$/m,
    says: { 'docs/importing.md': (bytes) => `A line has at most ${bytes / MIB} MiB. A file` },
  },
  {
    file: 'src/operator/deletion.ts',
    constant: /^const AT_ONCE = (\S+)$/m,
    says: { 'docs/importing.md': (connections) => `${connections} in a transaction` },
  },
  {
    file: 'src/operator/program.ts',
    constant: /accept less than the (\d+) days that the API guarantees/,
    says: { 'docs/importing.md': (days) => `the ${days} days that the API guarantees` },
  },
  {
    file: 'src/operator/migrate.ts',
    constant: /^const ATTEMPTS = (\S+)$/m,
    says: { 'docs/upgrade.md': (attempts) => `After ${attempts} attempts` },
  },
  {
    file: 'deploy/kubernetes/operator.yaml',
    constant: /ttlSecondsAfterFinished: (\d+)$/m,
    says: {
      'docs/deploy.md': (time) => `deletes the Job ${word(time / 60)} minutes after its end`,
    },
  },
  {
    file: 'clients/mcp/src/copies.ts',
    constant: /^const MAX_ROWS = (\S+)$/m,
    says: {
      'clients/mcp/README.md': (rows) => `A connection with more than ${grouped(rows)} rows`,
    },
  },
  {
    file: 'clients/mcp/src/copies.ts',
    constant: /^const MAX_ROWS_OF_ALL = (\S+)$/m,
    says: { 'clients/mcp/README.md': (rows) => `At most ${grouped(rows)} rows of all connections` },
  },
  {
    file: 'clients/typescript/src/http.ts',
    constant: /timeoutMs = (\d+_\d+),/,
    says: {
      'docs/clients.md': (ms) => `| ${seconds(ms)} s | Time limit of one attempt`,
      'src/http/openapi/guide.md': (ms) => `attempts of ${seconds(ms)} seconds each`,
    },
  },
  {
    file: 'clients/typescript/src/http.ts',
    constant: /attempts = (\d+),/,
    says: {
      'docs/clients.md': (attempts) => `| ${attempts} | Attempts of a request`,
      'src/http/openapi/guide.md': (attempts) => `up to ${word(attempts)} attempts`,
    },
  },
  {
    file: 'clients/typescript/src/http.ts',
    constant: /baseDelayMs = (\d+),/,
    says: { 'docs/clients.md': (ms) => `| ${seconds(ms)} s | Longest random delay` },
  },
  {
    file: 'clients/typescript/src/http.ts',
    constant: /maxDelayMs = (\d+_\d+) /,
    says: { 'docs/clients.md': (ms) => `| ${seconds(ms)} s | Longest delay.` },
  },
  {
    file: 'clients/typescript/src/sqlite-store.ts',
    constant: /^const WAIT_MS = (\S+)$/m,
    says: { 'docs/clients.md': (ms) => `locks the database for more than ${seconds(ms)} s` },
  },
]

/** The product of the factors of a constant, or the power. */
function figureOf(constant: string): number {
  const text = constant.replaceAll('_', '')
  const [base = '', exponent] = text.split(' ** ')
  if (exponent !== undefined) return Number(base) ** Number(exponent)
  return text.split(' * ').reduce((product, factor) => product * Number(factor), 1)
}

for (const { file, constant, says } of CONSTANTS) {
  t.test(`${file}: the pages have the figure of ${constant}`, (t) => {
    const [, found] = constant.exec(read(file)) ?? []
    if (found === undefined) throw new Error(`${file} has no ${constant}`)
    const figure = figureOf(found)
    for (const [page, say] of Object.entries(says))
      t.ok(textOf(page).includes(say(figure)), `${page}: ${say(figure)}`)
    t.end()
  })
}

t.test('proxy.md: one block of an export takes twice STATEMENT_TIMEOUT_MS and one second', (t) => {
  const time = 2 * seconds(settings.STATEMENT_TIMEOUT_MS.default) + 1
  t.equal(time, 11)
  t.ok(textOf('docs/proxy.md').includes('longer than one block of an export takes: eleven seconds'))
  t.end()
})

t.test('scale.md: the limits of statements behind PgBouncer are the defaults', (t) => {
  const limit = seconds(settings.STATEMENT_TIMEOUT_MS.default)
  const said = `the limit is ${limit} s, of which a statement may wait ${limit / 5} s for a lock`
  t.ok(textOf('docs/scale.md').includes(said), said)
  t.end()
})

t.test(
  'scale.md: 100 million rows, with indexes and counts, fit into the memory that it names',
  (t) => {
    const sizes = [...read('bench/results/sizes.md').matchAll(/^\| (\w+) \| (\d+) \|$/gm)]
    const rows = sizes.filter(([, name = '']) => !name.includes('removal'))
    t.ok(rows.length >= 4)
    const bytes = rows.reduce((sum, [, , size]) => sum + Number(size) * MIB * 100, 0)
    const [, memory] =
      /one server with (\d+) GB of memory holds everything/.exec(textOf('docs/scale.md')) ?? []
    // The system and the sessions need a part of it.
    t.ok(bytes < 0.75 * Number(memory) * 1e9, `${bytes} bytes`)
    t.end()
  },
)

t.test(
  'credentials.md: a withdrawn key is valid until the next fetch, and as long as a token is kept',
  (t) => {
    const provider = read('src/http/identity-provider.ts')
    const [, fetched = ''] = /keys\.reload\(\)\.catch\(report\), (\w+)\)/.exec(provider) ?? []
    const [, kept = ''] = /^const CACHED_FOR_MS = (\S+)$/m.exec(provider) ?? []
    t.equal(seconds(figureOf(fetched) + figureOf(kept)) / 60, 11)
    t.ok(textOf('docs/credentials.md').includes('remains valid for up to eleven minutes'))
    t.end()
  },
)

t.test('tax-report.md: the number of connections of the sample data', (t) => {
  const connections = Object.keys(DEMO.wealth.connections).length
  t.ok(textOf('docs/tutorials/tax-report.md').includes(`with ${connections} connections`))
  t.end()
})

t.test('sandbox.md: each gain that is computed by hand is that of expected.json', (t) => {
  const [, table = ''] = /### By hand\n([\s\S]*?)\n## /.exec(read('docs/sandbox.md')) ?? []
  const expected = JSON.parse(read('seeds/expected.json'))
  const rows = [...table.matchAll(/^\| `(DEMO\w+)` \| (.*) \|$/gm)]
  t.ok(rows.length > 10)
  for (const [, connection = '', text = ''] of rows) {
    const sums = [
      ...text.replaceAll(',', '').matchAll(/(?<sum>[\d(][\d.()×/+ -]*) = (?<result>-?[\d.]+\d)/g),
    ]
    t.ok(sums.length > 0, connection)
    const gains = new Set(
      expected[connection].flatMap(
        ({ years }: { years: Record<string, { realisedGain: string }> }) =>
          Object.values(years).map(({ realisedGain }) => Number(realisedGain)),
      ),
    )
    let total = 0
    for (const { groups: { sum = '', result = '' } = {} } of sums) {
      const value = resultOf(sum)
      t.ok(Math.abs(value - Number(result)) < 1e-9, `${connection}: ${sum} = ${result}`)
      total += value
    }
    const last = Math.round(resultOf(sums.at(-1)?.groups?.sum ?? '') * 100 + 1e-6) / 100
    const all = Math.round(total * 100) / 100
    t.ok(gains.has(last) || gains.has(all), `${connection}: ${last} or ${all}`)
  }
  t.end()
})

/** Returns the value of a sum with products, quotients and parentheses. */
function resultOf(sum: string): number {
  const tokens = sum.match(/[\d.]+|[()×/+-]/g) ?? []
  const factor = (): number => {
    const token = tokens.shift()
    if (token !== '(') return Number(token)
    const value = add()
    tokens.shift()
    return value
  }
  const multiply = (): number => {
    let value = factor()
    while (tokens[0] === '×' || tokens[0] === '/')
      value = tokens.shift() === '×' ? value * factor() : value / factor()
    return value
  }
  const add = (): number => {
    let value = multiply()
    while (tokens[0] === '+' || tokens[0] === '-')
      value = tokens.shift() === '+' ? value + multiply() : value - multiply()
    return value
  }
  return add()
}
