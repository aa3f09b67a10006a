import t from 'tap'
import { isProblem } from '../support/problem.ts'
import { addApp, addCaller, addConnection, addresses, listNames, lists } from '../support/rows.ts'
import { type ServiceResponse, startService } from '../support/service.ts'

const { db, get, log } = await startService(t)
const { appId, token, connection } = await addCaller(db)
const foreign = await addConnection(db, await addApp(db))
for (const list of listNames) await lists[list].add(db, foreign, {})

/** Returns the whole response without its date and request id, to compare the bytes. */
function contentOf({ status, headers, text }: ServiceResponse): string {
  const id = String(headers.get('x-request-id'))
  const lines = [...headers].filter(([name]) => name !== 'x-request-id' && name !== 'date')
  return JSON.stringify([status, lines, text.replace(id, '<id>')])
}

const endpoints = ['portfolio', 'account', 'orders'] as const

for (const endpoint of endpoints) {
  t.test(
    `${endpoint}: unknown, malformed and foreign tokens get the same 404 (contract 18)`,
    async (t) => {
      const first = await get(foreign[endpoint], { token })
      isProblem(t, first, 'connection_not_found')
      const others = [
        'x',
        ' ',
        'nobody-has-this',
        `${connection.token}x`,
        connection.token.slice(1),
        connection.token.toUpperCase().concat('A'),
        token,
        '../..',
        "' or ''='",
        '\0',
        '%',
        '漢字',
        '😀',
        'a'.repeat(5_000),
      ]
      for (const other of others) {
        const response = await get(addresses(other)[endpoint], { token })
        t.equal(
          contentOf(response),
          contentOf(first),
          other.replaceAll(token, '<token>').slice(0, 40),
        )
      }
      const nothing = endpoints.filter((name) => name !== endpoint)
      for (const name of nothing)
        t.equal(contentOf(await get(foreign[name], { token })), contentOf(first))
    },
  )

  t.test(`${endpoint}: a 404 has no ETag, Last-Modified or Link (contract 18)`, async (t) => {
    const headers = { 'if-none-match': '*', 'accept-encoding': 'identity' }
    const response = await get(foreign[endpoint], { token, headers })
    isProblem(t, response, 'connection_not_found')
    for (const name of ['etag', 'last-modified', 'link']) t.equal(response.headers.get(name), null)
  })
}

t.test('200: connection tokens can be any string (contract 21)', async (t) => {
  const strings = ['a/b', 'a b', '%2F', '漢字', '?x=1#y', 'x'.repeat(5_000), '"<>\\^`{|}', '+']
  for (const string of strings) {
    const { portfolio, account, orders } = await addConnection(db, appId, string)
    for (const path of [portfolio, account, orders]) {
      t.equal((await get(path, { token })).status, 200, string.slice(0, 40))
    }
  }
})

t.test('404 route_not_found: unknown path (contract 16)', async (t) => {
  const paths = [
    '/api',
    '/api/v1',
    '/api/v2/queries/connections/x/assets-transfer',
    '/api/v1/queries/connections/',
    `${connection.orders}/`,
    `/${connection.orders}`,
    connection.orders.replace('/api', '/API'),
    `${connection.orders}/x`,
    '/favicon.ico',
    '/.env',
  ]
  for (const path of paths) {
    isProblem(
      t,
      await get(path, { token }),
      'route_not_found',
      path.replace(connection.token, ':t'),
    )
    isProblem(t, await get(path), 'route_not_found', 'without a token, too')
  }
})

t.test('404: the log contains no token (contract 21)', async (t) => {
  t.ok(log.length > 0)
  const secrets = [token, connection.token, foreign.token, 'nobody-has-this']
  for (const secret of secrets) t.notOk(log.some((line) => line.includes(secret)))
})
