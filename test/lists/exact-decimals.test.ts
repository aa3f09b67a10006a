import t from 'tap'
import { DEMO } from '../../seeds/sample-data.ts'
import { countNumbers, unquoteDecimals } from '../support/exact-json.ts'
import { addresses } from '../support/rows.ts'
import { DEMO_TOKEN, startSeededService } from '../support/seeded-service.ts'

const EXACT = 'application/json;IEEE754Compatible=true'
const DEFAULT_TYPE = 'application/json; charset=utf-8'

const { get } = await startSeededService(t)
const { large, small, empty } = DEMO.wealth.connections
const { portfolio, account, orders } = addresses(small.token)

/** Sends a request with the app token of the sample data. */
const request = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
  get(path, { token: DEMO_TOKEN, headers, method })

t.test('exact: the body without quotes is the default body, byte for byte', async (t) => {
  let decimals = 0
  for (const { token } of [small, large, empty]) {
    const paths = addresses(token)
    const lists = [paths.portfolio, paths.account].flatMap((path) => [
      path,
      `${path}?limit=7&page=3`,
      `${path}?limit=10000`,
      `${path}?since=start&limit=500`,
    ])
    for (const path of [...lists, paths.orders]) {
      const byDefault = await request(path)
      const exact = await request(path, { accept: EXACT })
      t.equal(exact.headers.get('content-type'), `${EXACT}; charset=utf-8`)
      t.equal(unquoteDecimals(exact.text), byDefault.text, path)
      t.equal(countNumbers(exact.text), 0, 'no decimal is a number')
      t.equal(exact.headers.get('link'), byDefault.headers.get('link'))
      decimals += countNumbers(byDefault.text)
    }
  }
  t.ok(decimals > 10_000, `${decimals} decimals`)
})

t.test('ETag, Vary: each media type has its own tag, and gives 304 for no other', async (t) => {
  for (const path of [portfolio, account, orders, `${portfolio}?since=start`]) {
    const byDefault = await request(path)
    const exact = await request(path, { accept: EXACT })
    const [tag, exactTag] = [byDefault, exact].map(({ headers }) => String(headers.get('etag')))
    t.not(tag, exactTag)
    const statusOf = async (accept: string, known: unknown) =>
      (await request(path, { accept, 'if-none-match': String(known) })).status
    t.equal(await statusOf('*/*', tag), 304)
    t.equal(await statusOf('*/*', exactTag), 200)
    t.equal(await statusOf(EXACT, exactTag), 304)
    t.equal(await statusOf(EXACT, tag), 200)
    t.equal(await statusOf(EXACT, `${tag}, ${exactTag}`), 304)
    t.equal(byDefault.headers.get('vary'), 'accept, accept-encoding')
    t.equal(exact.headers.get('vary'), 'accept, accept-encoding')
    const headers = { accept: EXACT, 'if-none-match': String(exactTag) }
    const notModified = await request(path, headers)
    t.equal(notModified.headers.get('vary'), 'accept, accept-encoding')
    t.equal(notModified.headers.get('etag'), exactTag)
  }
})

t.test('compressed, and HEAD: as the default', async (t) => {
  const headers = { accept: EXACT, 'accept-encoding': 'gzip' }
  const compressed = await request(addresses(large.token).account, headers)
  t.equal(compressed.headers.get('content-encoding'), 'gzip')
  t.equal(compressed.headers.get('vary'), 'accept, accept-encoding')
  const plain = await request(addresses(large.token).account, { accept: EXACT })
  t.equal(compressed.text, plain.text)
  const head = await request(portfolio, { accept: EXACT }, 'HEAD')
  t.equal(head.headers.get('content-type'), `${EXACT}; charset=utf-8`)
  const { text } = await request(portfolio, { accept: EXACT })
  t.equal(head.headers.get('content-length'), String(Buffer.byteLength(text)))
})

t.test('version: 200, and 412 with the one error body', async (t) => {
  const version = (await request(portfolio, { accept: EXACT })).headers.get('data-version')
  const page = await request(`${portfolio}?version=${version}`, { accept: EXACT })
  t.equal(page.status, 200)
  t.equal(countNumbers(page.text), 0)
  const changed = await request(`${portfolio}?version=1.1`, { accept: EXACT })
  t.equal(changed.status, 412)
  t.equal(changed.headers.get('content-type'), DEFAULT_TYPE)
})

const IEEE = 'IEEE754Compatible=true'

t.test('Accept: only a named media type with the parameter asks for strings', async (t) => {
  const exact = [
    EXACT,
    'application/json; IEEE754Compatible=true',
    'APPLICATION/JSON;ieee754compatible=TRUE',
    `application/json ; charset=utf-8;\t${IEEE} ;q=0.1`,
    'application/json;IEEE754Compatible="true"',
    `application/json;odata.metadata=minimal;${IEEE}`,
    `${EXACT}, application/json`,
    `application/json, ${EXACT}`,
    `*/*, ${EXACT}`,
    `application/json;q=0.8, ${EXACT};q=0.9, text/html`,
    `application/json;q=0,${EXACT}`,
    `x/y;z="a,b;q=0", ${EXACT}`,
    `text/html;q=0.9,,${EXACT};Q=1.000`,
    `${EXACT};q=0.001, */*;q=0`,
  ]
  for (const accept of exact) {
    const { headers } = await request(orders, { accept })
    t.equal(headers.get('content-type'), `${EXACT}; charset=utf-8`, accept)
  }
  const byDefault = await request(orders)
  const others = [
    '*/*',
    '',
    'application/json',
    'application/*',
    'application/json; charset=utf-8',
    'application/json;IEEE754Compatible=false',
    'application/json;IEEE754Compatible=maybe',
    'application/json;IEEE754Compatible',
    'application/json;IEEE754Compatible=truer',
    'application/json;xIEEE754Compatible=true',
    `application/*;${IEEE}`,
    `*/*;${IEEE}`,
    `application/xml;${IEEE}`,
    `${EXACT};q=0`,
    `${EXACT};q=0.000, */*;q=0.1`,
    `${EXACT};q=x`,
    `${EXACT};q=-1`,
    `${EXACT};q=1.001`,
    `application/json, ${EXACT};q=0.9`,
    `*/*, ${EXACT};q=0.9`,
    `"${EXACT}"`,
    `x/y;z=", ${EXACT}`,
    'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8',
    'application/json, text/plain, */*',
    'text/csv',
    'image/png',
    'application/json;q=0',
    '*/*;q=0',
    ';;,,=,q',
    ',"\\'.repeat(4_000),
  ]
  for (const accept of others) {
    const response = await request(orders, { accept })
    t.equal(response.status, 200, accept.slice(0, 80))
    t.equal(response.text, byDefault.text)
    for (const name of ['content-type', 'etag', 'vary', 'content-length'])
      t.equal(response.headers.get(name), byDefault.headers.get(name), name)
  }
})
