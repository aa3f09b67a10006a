import t from 'tap'
import { DEMO } from '../../seeds/sample-data.ts'
import { unquoteDecimals } from '../support/exact-json.ts'
import { isProblem } from '../support/problem.ts'
import { addAccountTransactions, addCaller, addresses } from '../support/rows.ts'
import { DEMO_TOKEN, startSeededService } from '../support/seeded-service.ts'

const NDJSON = 'application/x-ndjson'
const CSV = 'text/csv'
const EXPORTS = [NDJSON, `${NDJSON};IEEE754Compatible=true`, CSV]

const { db, get } = await startSeededService(t)
const { large, small, empty } = DEMO.wealth.connections
const { account } = addresses(small.token)

/** Sends a request with the app token of the sample data. */
const request = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
  get(path, { token: DEMO_TOKEN, headers, method })

const itemsOf = (page: string) => page.slice('{"items":['.length, page.lastIndexOf('],"limit"'))
const linesOf = (text: string) => text.split('\n').slice(0, -1)

const RANGES = ['', 'from=2024-03-01', 'to=2020-06-30', 'from=2019-01-01&to=2024-12-31']

t.test('NDJSON: the bytes of the items of the list, one a line', async (t) => {
  for (const { token } of [large, small, empty]) {
    const { portfolio, account } = addresses(token)
    for (const path of [portfolio, account]) {
      for (const range of RANGES) {
        const page = await request(`${path}?limit=10000&${range}`)
        const exported = await request(`${path}?${range}`, { accept: NDJSON })
        t.equal(exported.status, 200)
        t.equal(exported.headers.get('x-total-count'), String(page.json().totalItems))
        t.equal(linesOf(exported.text).join(','), itemsOf(page.text), `${token} ${range}`)
        t.equal(exported.headers.get('data-version'), page.headers.get('data-version'))
      }
      const { text } = await request(path, { accept: NDJSON })
      const [, exact] = EXPORTS
      const strings = await request(path, { accept: String(exact), 'accept-encoding': 'gzip' })
      t.equal(unquoteDecimals(strings.text), text)
    }
  }
})

t.test('headers: type, ETag, total, file name, and 304', async (t) => {
  const { portfolio } = addresses(small.token)
  const tags = new Set<string>()
  for (const accept of EXPORTS) {
    const extension = accept === CSV ? 'csv' : 'ndjson'
    const names = {
      '': `portfolio-transactions.${extension}`,
      '?from=2024-01-01': `portfolio-transactions-from-2024-01-01.${extension}`,
      '?to=2024-12-31': `portfolio-transactions-to-2024-12-31.${extension}`,
      '?from=2024-01-01&to=2024-12-31': `portfolio-transactions-from-2024-01-01-to-2024-12-31.${extension}`,
    }
    for (const [query, name] of Object.entries(names)) {
      const { headers } = await request(portfolio + query, { accept })
      t.equal(headers.get('content-type'), `${accept}; charset=utf-8`)
      t.equal(headers.get('content-disposition'), `attachment; filename="${name}"`)
      t.equal(headers.get('vary'), 'accept, accept-encoding')
      t.equal(headers.get('cache-control'), 'private, no-cache')
      const tag = String(headers.get('etag'))
      tags.add(tag)
      for (const known of [tag, '*']) {
        const notModified = await request(portfolio + query, { accept, 'if-none-match': known })
        t.equal(notModified.status, 304, known)
        t.equal(notModified.text, '')
        t.equal(notModified.headers.get('etag'), tag)
      }
      const list = await request(portfolio + query, { 'if-none-match': tag })
      t.equal(list.status, 200, 'the tag of an export is not that of the list')
      const head = await request(portfolio + query, { accept }, 'HEAD')
      t.equal(head.status, 200)
      t.equal(head.text, '')
      for (const same of ['content-type', 'etag', 'content-disposition', 'x-total-count'])
        t.equal(head.headers.get(same), headers.get(same), same)
      t.equal(head.headers.get('content-length'), null)
    }
  }
  t.equal(tags.size, EXPORTS.length * 4, 'one tag for each type and range')
})

t.test('errors: parameters of pages, credentials, connection, method', async (t) => {
  for (const accept of EXPORTS) {
    const query = 'limit=0&page=x&since=start&version=1.1&from=2025-02-30&other=1'
    const rejected = await request(`${account}?${query}`, { accept })
    t.equal(rejected.status, 400)
    const errors = (rejected.json() as { errors: { parameter: string; code: string }[] }).errors
    t.strictSame(errors.map(({ parameter, code }) => `${parameter} ${code}`).sort(), [
      'from invalid_format',
      'limit excluded_parameter',
      'other unknown_parameter',
      'page excluded_parameter',
      'since excluded_parameter',
      'version excluded_parameter',
    ])
    t.equal((await get(account, { headers: { accept } })).status, 401)
    t.equal((await request(addresses('none').account, { accept })).status, 404)
    const other = addresses(DEMO.tax.connections.other.token).account
    t.equal((await request(other, { accept })).status, 404)
    t.equal((await request(account, { accept }, 'POST')).status, 405)
    const orders = await request(addresses(small.token).orders, { accept })
    t.equal(orders.headers.get('content-type'), 'application/json; charset=utf-8')
  }
})

t.test('Accept: the heaviest named type', async (t) => {
  const expected: [accept: string, type: string][] = [
    [`${CSV}, */*`, CSV],
    ['TEXT/CSV; header=present', CSV],
    [`${NDJSON};q=0.5, ${CSV};q=0.4`, NDJSON],
    [`${CSV}, ${NDJSON}`, CSV],
    [`application/json, ${CSV}`, 'application/json'],
    [`application/json;q=0.9, ${CSV}`, CSV],
    ['text/*', 'application/json'],
    ['application/*', 'application/json'],
    [`application/*, ${CSV};q=0.5`, 'application/json'],
    [`application/*, ${CSV}`, CSV],
    [`${CSV};q=0`, 'application/json'],
    ['text/html, text/*;q=0.9, */*;q=0.1', 'application/json'],
  ]
  for (const [accept, type] of expected) {
    const { headers } = await request(account, { accept })
    t.equal(headers.get('content-type'), `${type}; charset=utf-8`, accept)
  }
})

/** Parses RFC 4180. A field in quotes is text, another one is text or null if it is empty. */
function parseCsv(text: string): (string | null)[][] {
  const records: (string | null)[][] = [[]]
  for (const [, quoted, plain, end] of text.matchAll(
    /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n|$)/g,
  )) {
    records.at(-1)?.push(quoted === undefined ? plain || null : quoted.replaceAll('""', '"'))
    if (end === '\r\n') records.push([])
  }
  return records.slice(0, -1)
}

t.test('CSV: the fields of the items, null as an empty field', async (t) => {
  const caller = await addCaller(db)
  const texts = ['', ' ', '"', '""', 'a,b', 'a\r\nb', '\n', '=1+1', 'é😀', "'", '\t', '\\']
  await addAccountTransactions(
    db,
    caller.connection,
    ...texts.map((description) => ({ description, amount: '-1.50' })),
    { description: null },
  )
  const paths = [
    caller.connection.account,
    ...[large, small].flatMap(({ token }) => {
      const { portfolio, account } = addresses(token)
      return [portfolio, account]
    }),
  ]
  for (const path of paths) {
    const token = path === caller.connection.account ? caller.token : DEMO_TOKEN
    const exact = { token, headers: { accept: String(EXPORTS[1]) } }
    const items = linesOf((await get(path, exact)).text).map((line) => JSON.parse(line))
    const { text } = await get(path, { token, headers: { accept: CSV } })
    const [header = [], ...records] = parseCsv(text)
    const rows = items.map(({ retentionDetail, ...item }) => ({
      ...item,
      ...(path.includes('portfolios')
        ? (retentionDetail ?? { retentionFrom: null, retentionTo: null })
        : {}),
    }))
    t.strictSame(header, Object.keys(rows[0]))
    t.strictSame(
      records,
      rows.map((row) => Object.values(row)),
    )
  }
})

t.test('Range: 400 only for the rest of an export', async (t) => {
  const path = addresses(small.token).portfolio
  for (const range of ['bytes=1-', 'bytes=4096-', 'Bytes=010-']) {
    const response = await request(path, { accept: NDJSON, range })
    t.match(
      isProblem(t, response, 'malformed_request').detail,
      'An export cannot be continued',
      range,
    )
    const unknown = await get(path, { token: 'unknown', headers: { accept: NDJSON, range } })
    isProblem(t, unknown, 'invalid_token')
  }
  const rest = 'bytes=5-'
  const others: [Record<string, string>, string?][] = [
    [{ accept: CSV, range: 'bytes=0-' }],
    [{ accept: CSV, range: 'bytes=5-9' }],
    [{ accept: CSV, range: 'bytes=-5' }],
    [{ accept: CSV, range: 'rows=5-' }],
    [{ accept: CSV, range: rest, 'if-range': 'W/"x"' }],
    [{ accept: CSV, range: rest }, 'HEAD'],
    [{ accept: 'application/json', range: rest }],
  ]
  for (const [headers, method] of others) {
    const { range: _, ...without } = headers
    const response = await request(path, headers, method)
    t.equal(response.status, 200, JSON.stringify(headers))
    t.equal(response.text, (await request(path, without, method)).text)
  }
})
