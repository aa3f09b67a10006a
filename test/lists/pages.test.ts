import { sql } from 'kysely'
import t, { type Test } from 'tap'
import { isProblem } from '../support/problem.ts'
import {
  addApp,
  addCaller,
  addConnection,
  addPortfolioTransactions,
  addresses,
  listNames,
  lists,
} from '../support/rows.ts'
import { type ServiceResponse, startService } from '../support/service.ts'
import { until } from '../support/until.ts'

const { db, get, log, url } = await startService(t)

const { appId, token, connection } = await addCaller(db)
const foreign = await addConnection(db, await addApp(db))
for (const list of listNames) await lists[list].add(db, foreign, {})

for (const list of listNames) {
  const { add } = lists[list]

  t.test(`${list}: items, limit, page, totalItems, in this order (section 2.1)`, async (t) => {
    const { token, connection } = await addCaller(db)
    const empty = await get(connection[list], { token })
    t.equal(empty.text, '{"items":[],"limit":1000,"page":0,"totalItems":0}')
    t.equal(empty.headers.get('content-type'), 'application/json; charset=utf-8')
    await add(db, connection, {})
    const { items, ...rest } = (await get(connection[list], { token })).json()
    t.equal(items.length, 1)
    t.strictSame(rest, { limit: 1000, page: 0, totalItems: 1 })
  })

  t.test(`${list}: limit defaults to 1000 and page to 0 (section 8)`, async (t) => {
    const { token, connection } = await addCaller(db)
    await add(db, connection, ...Array.from({ length: 1001 }, () => ({})))
    t.match((await get(connection[list], { token })).json(), {
      items: { length: 1000 },
      limit: 1000,
      page: 0,
      totalItems: 1001,
    })
    const last = await get(`${connection[list]}?page=1`, { token })
    t.match(last.json(), { items: { length: 1 }, limit: 1000, page: 1, totalItems: 1001 })
    const all = await get(`${connection[list]}?limit=10000`, { token })
    t.match(all.json(), { items: { length: 1001 }, limit: 10000, page: 0, totalItems: 1001 })
  })

  t.test(`${list}: limit and page are the values applied, as integers (contract 9)`, async (t) => {
    const { token, connection } = await addCaller(db)
    const { text } = await get(`${connection[list]}?limit=007&page=0000000003`, { token })
    t.equal(text, '{"items":[],"limit":7,"page":3,"totalItems":0}')
  })

  t.test(`${list}: a page past the end has no items and the total (contract 6)`, async (t) => {
    const { token, connection } = await addCaller(db)
    const days = ['2025-01-01', '2025-01-01', '2025-01-02', '2025-01-03']
    await add(db, connection, ...days.map((day) => ({ operation_date_day: day })))
    for (const page of [4, 5, 1000, 2147483647]) {
      const beyond = (await get(`${connection[list]}?limit=1&page=${page}`, { token })).json()
      t.strictSame(beyond, { items: [], limit: 1, page, totalItems: 4 })
      const query = `?limit=1&page=${page}&from=2025-01-02`
      const filtered = (await get(connection[list] + query, { token })).json()
      t.strictSame(filtered, { items: [], limit: 1, page, totalItems: 2 })
    }
  })

  t.test(`${list}: totalItems depends on connection and dates only (contract 9)`, async (t) => {
    const { appId, token, connection } = await addCaller(db)
    const days = ['2025-01-01', '2025-01-01', '2025-01-02', '2025-01-03']
    await add(db, connection, ...days.map((day) => ({ operation_date_day: day })))
    const sibling = await addConnection(db, appId)
    await add(db, sibling, { operation_date_day: '2025-01-02' })
    const other = list === 'portfolio' ? 'account' : 'portfolio'
    await lists[other].add(db, connection, { operation_date_day: '2025-01-02' })

    const total = async (query: string) => {
      const { items, totalItems } = (await get(`${connection[list]}?${query}`, { token })).json()
      return [items.length, totalItems]
    }
    t.strictSame(await total(''), [4, 4])
    t.strictSame(await total('limit=1'), [1, 4])
    t.strictSame(await total('limit=3&page=1'), [1, 4])
    t.strictSame(await total('limit=1&from=2025-01-02'), [1, 2])
    t.strictSame(await total('limit=1&from=2025-01-02&to=2025-02-01'), [1, 2])
    t.strictSame(await total('limit=100&from=2024-12-31&to=2025-01-02'), [3, 3])
    t.strictSame(await total('limit=1&page=1&to=2025-01-01'), [1, 2])
    t.strictSame(await total('from=2025-01-02&to=2025-01-02'), [1, 1])
    t.strictSame(await total('from=2026-01-01'), [0, 0])
  })
}

t.test('concurrent writes: page and total come from one snapshot (contract 9)', async (t) => {
  const { token, connection } = await addCaller(db)
  const rows = Array.from({ length: 40 }, () => ({ operation_date_day: '2025-01-01' }))
  let writing = true
  const writer = (async () => {
    for (let round = 0; round < 60; round += 1) {
      await lists.account.add(db, connection, ...rows)
      await db
        .deleteFrom('account_transaction')
        .where('connection_id', '=', connection.id)
        .execute()
    }
  })().finally(() => {
    writing = false
  })
  const seen = new Set<number>()
  while (writing) {
    for (const query of [
      '',
      '?from=2025-01-01',
      '?to=2025-01-01&limit=40',
      '?from=2025-01-01&to=2025-01-31&limit=40',
    ]) {
      const { items, totalItems } = (await get(connection.account + query, { token })).json()
      if (items.length !== totalItems) t.fail(`${items.length} items, but a total of ${totalItems}`)
      seen.add(totalItems)
    }
  }
  await writer
  t.strictSame(
    [...seen].toSorted((a, b) => a - b),
    [0, 40],
    'only these two states occur',
  )
})

/** Targets of a Link header by rel, resolved against the request's URL. */
function targets(t: Test, link: string | null, requestUrl: string): Record<string, string> {
  const all = [...String(link).matchAll(/<([^>]*)>; rel="([a-z]+)"(?:, |$)/g)]
  t.equal(all.map(([whole]) => whole).join(''), link, 'the header is nothing but links')
  return Object.fromEntries(
    all.map(([, target, rel]) => [rel, new URL(String(target), requestUrl).href]),
  )
}

t.test(
  'full page of a range, and a change before its total is read: one snapshot (contract 9)',
  async (t) => {
    const { token, connection } = await addCaller(db)
    // A limit that is so large that the statement of the page does not count.
    const limit = 101
    const rows = Array.from({ length: limit + 1 }, () => ({ operation_date_day: '2025-01-03' }))
    await addPortfolioTransactions(db, connection, ...rows)
    const path = `${connection.portfolio}?from=2025-01-01&limit=${limit}`
    const before = await get(path, { token })
    t.match(before.json(), { items: { length: limit }, totalItems: rows.length })
    // Only the read of a total needs the row counts of months. It waits here until there is another row.
    const { response: waiting } = await db.transaction().execute(async (holder) => {
      await sql`lock table portfolio_transaction_month in access exclusive mode`.execute(holder)
      const response = get(path, { token })
      await until('the total waits', async () => {
        const { rows } = await sql`select from pg_locks where not granted
        and relation = 'portfolio_transaction_month'::regclass`.execute(db)
        return rows.length > 0
      })
      await addPortfolioTransactions(holder, connection, { operation_date_day: '2025-01-04' })
      return { response }
    })
    const response = await waiting
    const { items, totalItems } = response.json()
    t.equal(totalItems, rows.length + 1)
    t.equal(items.length, limit)
    t.strictSame(
      items
        .slice(0, 2)
        .map(({ operationDateDay }: { operationDateDay: string }) => operationDateDay),
      ['2025-01-04', '2025-01-03'],
    )
    t.not(response.headers.get('data-version'), before.headers.get('data-version'))
  },
)

for (const list of listNames) {
  t.test(
    `${list}: Link has first, prev, next and last; the last page has no next (contract 23)`,
    async (t) => {
      const { token, connection } = await addCaller(db)
      await lists[list].add(db, connection, ...Array.from({ length: 5 }, () => ({})))
      const rels = async (query: string) => {
        const response = await get(connection[list] + query, { token })
        const found = Object.entries(
          targets(t, response.headers.get('link'), url + connection[list]),
        )
        return found.map(([rel, target]) => `${rel} ${new URL(target).searchParams.get('page')}`)
      }
      t.strictSame(await rels(''), ['first 0', 'last 0'])
      t.strictSame(await rels('?limit=5'), ['first 0', 'last 0'])
      t.strictSame(await rels('?limit=2'), ['first 0', 'next 1', 'last 2'])
      t.strictSame(await rels('?limit=2&page=1'), ['first 0', 'prev 0', 'next 2', 'last 2'])
      t.strictSame(await rels('?limit=2&page=2'), ['first 0', 'prev 1', 'last 2'])
      t.strictSame(await rels('?limit=2&page=9'), ['first 0', 'prev 2', 'last 2'], 'past the end')
      t.strictSame(await rels('?from=2030-01-01'), ['first 0', 'last 0'], 'nothing found')
      t.strictSame(await rels('?from=2030-01-01&page=3'), ['first 0', 'prev 0', 'last 0'])
    },
  )

  t.test(`${list}: the next links lead through every row once (contract 23)`, async (t) => {
    const { token, connection } = await addCaller(db)
    const ids = await lists[list].add(db, connection, ...Array.from({ length: 7 }, () => ({})))
    const outside = ['1999-12-31', '2031-01-01'].map((day) => ({ operation_date_day: day }))
    await lists[list].add(db, connection, ...outside)
    const seen: string[] = []
    const query = '?limit=3&from=2000-01-01&to=2030-12-31'
    for (let next: string | undefined = url + connection[list] + query; next; ) {
      const response = await get(next.slice(url.length), { token })
      t.equal(response.status, 200)
      const { items, totalItems } = response.json()
      t.equal(totalItems, 7, 'the filter is kept')
      seen.push(...items.map((item: Record<string, string>) => item[lists[list].id]))
      next = targets(t, response.headers.get('link'), next).next
    }
    t.strictSame(seen.toSorted(), ids.toSorted())
  })

  t.test(`${list}: Link does not contain the connection's token (contract 21)`, async (t) => {
    const { token, connection } = await addCaller(db)
    const link = String((await get(connection[list], { token })).headers.get('link'))
    t.notOk(link.includes(connection.token))
  })
}

t.test('orders: no pages and no Link (section 4.3)', async (t) => {
  const { token, connection } = await addCaller(db)
  t.equal((await get(connection.orders, { token })).headers.get('link'), null)
})

/** Returns the whole response without its date and request id, to compare the bytes. */
function contentOf({ status, headers, text }: ServiceResponse): string {
  const id = String(headers.get('x-request-id'))
  const lines = [...headers].filter(([name]) => name !== 'x-request-id' && name !== 'date')
  // The link to the documentation is relative to the path of the list.
  const content = JSON.stringify([status, lines, text.replace(id, '<id>')])
  return content.replace(/(?:\.\.\/)+(?=docs#)/, '')
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

  t.test(
    `${endpoint}: a 404 has no ETag, Last-Modified or Link of a page (contract 18)`,
    async (t) => {
      const headers = { 'if-none-match': '*', 'accept-encoding': 'identity' }
      const response = await get(foreign[endpoint], { token, headers })
      isProblem(t, response, 'connection_not_found')
      for (const name of ['etag', 'last-modified']) t.equal(response.headers.get(name), null)
      const link = response.headers.get('link')
      t.match(link, /^<(?:[.][.][/])+docs#connection_not_found>; rel="help"$/)
    },
  )
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
