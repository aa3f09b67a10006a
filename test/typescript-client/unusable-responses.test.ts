import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import {
  type Access,
  type ClientError,
  failureOf,
  startDrivers,
} from '../support/clients/drivers.ts'
import { addCaller, addPortfolioTransactions } from '../support/rows.ts'
import { startService } from '../support/service.ts'
import { withLengths } from '../support/with-lengths.ts'

/** Responses with the status 200 of a service that is broken or hostile. */
const service = await startService(t)
const clients = Object.entries(startDrivers(t))
const { token, connection } = await addCaller(service.db)
await addPortfolioTransactions(service.db, connection, { titles: '1.50' })

const MIB = 2 ** 20
const EXACT = 'IEEE754Compatible=true'
const JSON_TYPE = `application/json;${EXACT}`

/** Bodies of a true page, of its changes and of a line of an export, as text. */
async function bodyOf(query: string, accept = JSON_TYPE): Promise<string> {
  const path = `${connection.portfolio}${query}`
  return (await service.get(path, { token, headers: { accept } })).text
}
const PAGE = JSON.parse(await bodyOf(''))
const CHANGES = JSON.parse(await bodyOf('?since=start'))
const [ROW] = PAGE.items

/** After so many requests, the server answers 404, so that a client that never stops reading fails the test. */
const MOST_REQUESTS = 100

/** Answers each request with a body. */
async function startServer(t: Test, body: string | Buffer, headers: Record<string, string> = {}) {
  const served = { requests: 0, access: {} as Access }
  const server = createServer((_request, response) => {
    served.requests += 1
    if (served.requests > MOST_REQUESTS) {
      response.writeHead(404).end()
      return
    }
    response.writeHead(200, { 'content-type': JSON_TYPE, 'data-version': 'v', ...headers })
    response.end(body)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  t.teardown(() => server.closeAllConnections())
  const { port } = server.address() as AddressInfo
  served.access = { url: `http://127.0.0.1:${port}`, token, connection: 'secret-connection' }
  return served
}

const without = (name: string) => {
  const { [name]: _, ...others } = ROW
  return others
}

/** What is wrong, the body, and the message of the error. */
const PAGES: [name: string, body: unknown, message: string][] = [
  [
    'a row without fields',
    { ...PAGE, items: [{ transactionId: 'a' }] },
    'A row of the response has no valid portfolioId',
  ],
  [
    'a row without one field',
    { ...PAGE, items: [ROW, without('valueDateHour')] },
    'A row of the response has no valid valueDateHour',
  ],
  [
    'a row without its identifier',
    { ...PAGE, items: [without('transactionId')] },
    'A row of the response has no valid transactionId',
  ],
  [
    'an identifier of null',
    { ...PAGE, items: [{ ...ROW, transactionId: null }] },
    'A row of the response has no valid transactionId',
  ],
  [
    'a decimal as number',
    { ...PAGE, items: [{ ...ROW, titles: 1.5 }] },
    'A row of the response has no valid titles',
  ],
  [
    'a decimal that is none',
    { ...PAGE, items: [{ ...ROW, amount: 'NaN' }] },
    'A row of the response has no valid amount',
  ],
  [
    'a decimal with an exponent',
    { ...PAGE, items: [{ ...ROW, price: '1e9' }] },
    'A row of the response has no valid price',
  ],
  [
    'a text as object',
    { ...PAGE, items: [{ ...ROW, description: {} }] },
    'A row of the response has no valid description',
  ],
  [
    'an object as text',
    { ...PAGE, items: [{ ...ROW, retentionDetail: 'x' }] },
    'A row of the response has no valid retentionDetail',
  ],
  [
    'an object without a field',
    { ...PAGE, items: [{ ...ROW, retentionDetail: { retentionFrom: '1' } }] },
    'A row of the response has no valid retentionTo',
  ],
  ['a row that is a list', { ...PAGE, items: [[]] }, 'A row of the response is no object'],
  ['a row of null', { ...PAGE, items: [null] }, 'A row of the response is no object'],
  ['no rows', { ...PAGE, items: undefined }, 'The response has no valid items'],
  ['a number of rows', { ...PAGE, items: 5 }, 'The response has no valid items'],
  ['no total', { ...PAGE, totalItems: null }, 'The response has no valid totalItems'],
  ['pages without an end', { ...PAGE, items: [], limit: 0 }, 'The response has no valid limit'],
  ['null', null, 'The response has no valid items'],
  ['a list', [], 'The response has no valid items'],
  ['a text', 'x', 'The response has no valid items'],
]
const FEEDS: [name: string, body: unknown, message: string][] = [
  [
    'a row without fields',
    { ...CHANGES, items: [{ transactionId: 'a' }] },
    'A row of the response has no valid portfolioId',
  ],
  ['no removed rows', { ...CHANGES, removed: undefined }, 'The response has no valid removed'],
  [
    'removed rows that are no texts',
    { ...CHANGES, removed: [1] },
    'The response has no valid removed',
  ],
  ['no cursor', { ...CHANGES, nextCursor: null }, 'The response has no valid nextCursor'],
  ['no end', { ...CHANGES, hasMore: 'yes' }, 'The response has no valid hasMore'],
]

async function isUnusable(t: Test, failed: Promise<unknown>, message: string): Promise<void> {
  const error: ClientError = await failureOf(failed)
  t.match(error, { name: 'TransportError', code: 'unexpected_response', status: 200, message })
  t.notMatch(error.shown, /secret-connection/)
}

for (const [language, client] of clients) {
  t.test(`${language}: a page that is none`, async (t) => {
    for (const [name, body, message] of PAGES) {
      const served = await startServer(t, JSON.stringify(body))
      await isUnusable(t, client.list(served.access, 'portfolio'), message)
      t.equal(served.requests, 1, name)
    }
  })

  t.test(`${language}: changes that are none: no copy has them`, async (t) => {
    const file = `${t.testdir({})}/copy.db`
    for (const [name, body, message] of FEEDS) {
      const served = await startServer(t, JSON.stringify(body))
      await isUnusable(t, client.sync(served.access, 'portfolio'), message)
      await isUnusable(t, client.copy(served.access, file, 'mine'), message)
      t.equal(served.requests, 2, name)
      t.strictSame(await client.read(file, 'mine', 'portfolio'), [])
    }
  })

  t.test(`${language}: orders and rows of an export that are none`, async (t) => {
    const orders = await startServer(t, '[{"id":"a"}]')
    await isUnusable(
      t,
      client.orders(orders.access),
      'A row of the response has no valid portfolio',
    )
    const none = await startServer(t, '{}')
    await isUnusable(t, client.orders(none.access), 'The response is no list')
    const headers = { 'content-type': `application/x-ndjson;${EXACT}` }
    for (const [line, message] of [
      ['{"transactionId":"a"}', 'A row of the response has no valid portfolioId'],
      ['{"transactionId":', 'The response is not from the service'],
      [
        `{"x":${'['.repeat(100)}${']'.repeat(100)}}`,
        'The response has too many objects or lists in each other',
      ],
    ] as const) {
      const served = await startServer(t, `${line}\n`, headers)
      await isUnusable(t, client.exported(served.access, 'portfolio'), message)
    }
    const endless = await startServer(t, 'x'.repeat(4 * MIB), headers)
    const message = 'A row of the response is too long'
    await isUnusable(t, client.exported(endless.access, 'portfolio'), message)
  })

  t.test(`${language}: a response that grows beyond its bound`, async (t) => {
    const body = gzipSync(Buffer.alloc(100 * MIB, ' '))
    t.ok(body.length < MIB / 5)
    const compressed = { 'content-encoding': 'gzip' }
    const served = await startServer(t, body, compressed)
    const message = 'The response is larger than 64 MiB: use a smaller page size'
    await isUnusable(t, client.list(served.access, 'portfolio'), message)
    t.equal(served.requests, 1)
    const text = { ...compressed, 'content-type': 'text/html' }
    const page = await startServer(t, gzipSync(Buffer.alloc(3 * MIB, 'x')), text)
    await isUnusable(t, client.list(page.access, 'portfolio'), 'Status 200 is not from the service')
  })

  t.test(`${language}: JSON that is too deep`, async (t) => {
    const message = 'The response has too many objects or lists in each other'
    const lists = '['.repeat(5_000_000)
    const extra = JSON.stringify({ ...PAGE, items: [{ ...ROW, later: 0 }] })
    const deep = `${'['.repeat(60)}${']'.repeat(60)}`
    for (const body of [
      lists,
      `${lists}${']'.repeat(5_000_000)}`,
      extra.replace('"later":0', `"later":${deep}`),
    ]) {
      const served = await startServer(t, body)
      await isUnusable(t, client.list(served.access, 'portfolio'), message)
      t.equal(served.requests, 1)
    }
    // A field of a later version.
    const flat = await startServer(t, extra.replace('"later":0', '"later":[{"a":[1,"[[["]}]'))
    t.match(
      await client.list(flat.access, 'portfolio'),
      withLengths([{ titles: '1.50', later: [{ a: [1, '[[['] }] }]),
    )
  })
}
