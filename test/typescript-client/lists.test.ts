import { getEventListeners, once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { InvestmentData, SqliteStore } from '../../clients/typescript/src/index.ts'
import { type Access, failureOf, startDrivers } from '../support/clients/drivers.ts'
import { startFaultProxy } from '../support/clients/fault-proxy.ts'
import { accessOf, digitsAsText, readList } from '../support/clients/service.ts'
import { parseExact } from '../support/exact-json.ts'
import {
  addAccountTransactions,
  addCaller,
  addPortfolioTransactions,
  addTransferOrders,
} from '../support/rows.ts'
import { startService } from '../support/service.ts'
import { until } from '../support/until.ts'
import { withLengths } from '../support/with-lengths.ts'

const service = await startService(t)
const { db } = service

/** Digits that a float does not keep, with trailing zeros. */
const DIGITS = [
  '-123456789012345678901.10000000000000000010',
  '100.00',
  '0.0000000000000000001',
  '7',
]

const caller = await addCaller(db)
await addPortfolioTransactions(
  db,
  caller.connection,
  ...Array.from({ length: 25 }, (_, index) => ({
    amount: String(DIGITS[index % DIGITS.length]),
    operation_date_day: `2025-01-${String(index + 1).padStart(2, '0')}`,
    description: 'Dividendo 0,25 €/acción "A"',
  })),
)
await addAccountTransactions(db, caller.connection, { amount: '0.00' }, { amount: '-5' })
await addTransferOrders(db, caller.connection, { titles: '1.50', total: true }, { amount: null })

for (const [language, client] of Object.entries(startDrivers(t))) {
  t.test(`${language}: rows of all pages, once each, in order, with every digit`, async (t) => {
    const access = { ...accessOf(service, caller), pageSize: 10 }
    for (const list of ['portfolio', 'account'] as const) {
      t.strictSame(await client.list(access, list), await readList(service, caller, list), list)
    }
    const { text } = await service.get(caller.connection.orders, { token: caller.token })
    t.strictSame(await client.orders(access), digitsAsText(parseExact(text)))
  })

  t.test(`${language}: only the days from and to, inclusive`, async (t) => {
    const access = { ...accessOf(service, caller), pageSize: 2 }
    const range = { from: '2025-01-05', to: '2025-01-09' }
    const rows = await client.list(access, 'portfolio', range)
    t.equal(rows.length, 5)
    t.strictSame(
      rows,
      await readList(service, caller, 'portfolio', '&from=2025-01-05&to=2025-01-09'),
    )
  })

  t.test(`${language}: a connection without rows`, async (t) => {
    const access = accessOf(service, await addCaller(db))
    t.strictSame(await client.list(access, 'account'), [])
    t.strictSame(await client.orders(access), [])
  })

  t.test(`${language}: exports have the rows and digits of the lists`, async (t) => {
    const access = accessOf(service, caller)
    const { token, connection } = caller
    for (const list of ['portfolio', 'account'] as const) {
      t.strictSame(await client.exported(access, list), await client.list(access, list), list)
      const csv = await service.get(connection[list], { token, headers: { accept: 'text/csv' } })
      t.equal(await client.csv(access, list), csv.text)
    }
    const range = { from: '2025-01-05', to: '2025-01-09' }
    t.strictSame(
      await client.exported(access, 'portfolio', range),
      await client.list(access, 'portfolio', range),
    )
    const empty = accessOf(service, await addCaller(db))
    t.strictSame(await client.exported(empty, 'account'), [])
  })

  t.test(`${language}: keeps its connection for 25 pages`, async (t) => {
    const proxy = await startFaultProxy(t, { target: service.url, fault: () => 'none' })
    const access = { ...accessOf(proxy, caller), pageSize: 1 }
    t.equal((await client.list(access, 'portfolio')).length, 25)
    t.same(proxy.counts, { none: 25 })
    // fetch() may open a second one while it finishes the first response.
    t.ok(proxy.connections <= (language === 'TypeScript' ? 2 : 1), `${proxy.connections}`)
  })

  t.test(`${language}: names itself, and each call by a trace id`, async (t) => {
    const proxy = await startFaultProxy(t, { target: service.url, fault: () => 'none' })
    const access = accessOf(proxy, caller)
    const { version } = JSON.parse(await readFile('clients/typescript/package.json', 'utf8'))
    const traceIds: unknown[] = []
    for (const options of [{}, {}, { traceId: 'job-7' }]) {
      await client.orders({ ...access, ...options })
      const { headers } = proxy
      const own = language === 'TypeScript' ? 'typescript' : 'python'
      t.equal(headers['user-agent'], `investment-data-client-${own}/${version}`)
      traceIds.push(headers['x-client-trace-id'])
      t.match(
        client.seen.attempts,
        withLengths([
          { list: 'assets-transfer', attempt: 1, status: 200, traceId: traceIds.at(-1) },
        ]),
      )
    }
    t.equal(new Set(traceIds).size, 3)
    // 16 random bytes as hexadecimal digits, or a UUID.
    for (const id of traceIds.slice(0, 2)) t.match(id, /^[0-9a-f]{32}$|^[0-9a-f-]{36}$/)
    t.equal(traceIds[2], 'job-7')
    t.match(await failureOf(client.orders({ ...access, token: 'unknown', traceId: 'job-8' })), {
      traceId: 'job-8',
      headers: { 'x-client-trace-id': 'job-8', 'www-authenticate': /invalid_token/ },
    })
  })

  t.test(`${language}: warns once about the end of a list`, async (t) => {
    const headers = { deprecation: '@1772323200', sunset: 'Mon, 01 Mar 2027 00:00:00 GMT' }
    const proxy = await startFaultProxy(t, { target: service.url, fault: () => 'none', headers })
    await client.list({ ...accessOf(proxy, caller), pageSize: 10 }, 'portfolio')
    const marks = 'Deprecation: @1772323200, Sunset: Mon, 01 Mar 2027 00:00:00 GMT'
    t.strictSame(client.seen.warnings, [
      `The service will end or change portfolios/transactions (${marks}). Read its CHANGELOG.md.`,
    ])
    await client.orders(accessOf(service, caller))
    t.strictSame(client.seen.warnings, [])
  })

  t.test(`${language}: a response that the service does not send: its code`, async (t) => {
    const fault = () => 'none' as const
    const failureWith = async (headers: Record<string, string | undefined>) => {
      const proxy = await startFaultProxy(t, { target: service.url, fault, headers })
      const access = { ...accessOf(proxy, caller), pageSize: 10 }
      return await failureOf(client.list(access, 'portfolio'))
    }
    t.match(await failureWith({ 'content-type': 'application/json; charset=utf-8' }), {
      code: 'decimals_not_text',
      status: 200,
    })
    const page = { code: 'unexpected_response', status: 200 }
    t.match(await failureWith({ 'content-type': 'text/html' }), page)
    t.match(await failureWith({ 'data-version': undefined }), page)
  })

  t.test(`${language}: changed data between two pages: data_changed`, async (t) => {
    const changing = await addCaller(db)
    await addPortfolioTransactions(db, changing.connection, {}, {}, {})
    let requests = 0
    // The second request waits for a change.
    const proxy = await startFaultProxy(t, {
      target: service.url,
      fault: () => 'none',
      before: async () => {
        requests += 1
        if (requests === 2) await addPortfolioTransactions(db, changing.connection, {})
      },
    })
    const access = { ...accessOf(proxy, changing), pageSize: 2 }
    t.match(await failureOf(client.list(access, 'portfolio')), {
      name: 'ProblemError',
      code: 'data_changed',
      status: 412,
    })
    t.equal(requests, 2)
  })

  t.test(`${language}: errors have code, status and requestId`, async (t) => {
    const access = accessOf(service, caller)
    const uuid = /^[\da-f-]{36}$/
    const of = (changed: Partial<Access>) => client.list({ ...access, ...changed }, 'account')
    const missing = await failureOf(of({ connection: 'a/../b?' }))
    t.match(missing, {
      name: 'ProblemError',
      code: 'connection_not_found',
      status: 404,
      requestId: uuid,
    })
    t.same(missing.errors, [])
    t.match(await failureOf(of({ token: 'unknown' })), {
      name: 'AuthenticationError',
      code: 'invalid_token',
      status: 401,
    })
    t.match(
      await failureOf(client.list(access, 'account', { from: '2025-02-30' })),
      withLengths({
        code: 'invalid_request',
        errors: [{ parameter: 'from', code: 'invalid_format' }],
        message: / from: .+ \(request /,
      }),
    )
    const proxy = await startFaultProxy(t, { target: service.url, fault: () => 'page' })
    t.match(await failureOf(client.orders(accessOf(proxy, caller))), {
      name: 'TransportError',
      code: 'unexpected_response',
      status: 404,
    })
  })

  t.test(`${language}: invalid Retry-After means no wait`, async (t) => {
    for (const retryAfter of ['²', 'Fri, 06 Nov 2026 08:49:37 +99999999999999']) {
      const fault = (n: number) => (n === 0 ? 'unavailable' : 'none')
      const proxy = await startFaultProxy(t, { target: service.url, fault, retryAfter })
      t.equal((await client.orders(accessOf(proxy, caller))).length, 2, retryAfter)
    }
  })

  t.test(`${language}: no error shows a token or an address`, async (t) => {
    const fault = (n: number) => (['silent', 'reset', 'cut', 'unavailable', 'page'] as const)[n]
    const proxy = await startFaultProxy(t, {
      target: service.url,
      fault: (n) => fault(n) ?? 'none',
    })
    const secrets = { token: 'app-secret', connection: 'connection-secret' }
    const access: Access = { ...secrets, url: proxy.url, attempts: 1, timeoutMs: 1000 }
    const port = proxy.url.slice('http://127.0.0.1:'.length)
    const attempts = [
      ...Array.from({ length: 6 }, () => () => client.sync(access, 'account')),
      () => client.orders({ ...access, url: 'http://127.0.0.1:1/app-secret' }),
      () => client.orders({ ...access, url: 'http://user:app-secret@127.0.0.1' }),
      () => client.orders({ ...access, url: 'app-secret' }),
      () => client.orders({ ...access, url: 'http://127.0.0.1:app-secret' }),
      () => client.orders({ ...access, token: 'app-secret\n' }),
      () => client.orders({ ...access, token: 'app-secret€' }),
      () => client.list(access, 'account', { from: 'from' }),
    ]
    for (const [index, attempt] of attempts.entries()) {
      const { shown, message } = await failureOf(attempt())
      t.ok(message.length > 10, message)
      for (const secret of ['app-secret', 'connection-secret', `:${port}`, '127.0.0.1'])
        t.notOk(shown.includes(secret), `attempt ${index} shows no ${secret}`)
    }
  })

  t.test(`${language}: a server that repeats the request in its error`, async (t) => {
    const secrets = { token: 'app-secret-1', connection: 'connection secret/2' }
    const encoded = encodeURIComponent(secrets.connection)
    const bodies = [
      { code: 'app-secret-1', detail: 'x', requestId: 'r' },
      { code: 'a'.repeat(100_000), detail: 'x', requestId: 'r' },
      { code: 'bad_\u001b[31m', detail: 'x', requestId: 'r' },
      { code: 'broken', detail: `GET /${encoded} Bearer app-secret-1`, requestId: 'app-secret-1' },
      { code: 'broken', detail: `/connection%20secret%2f2`, requestId: secrets.connection },
      {
        code: 'broken',
        detail: `\u001b[2J\r\nINFO forged\u2028${'y'.repeat(1e6)}`,
        requestId: 'r',
      },
      {
        code: 'invalid_request',
        detail: 'x',
        requestId: 'r',
        errors: [
          ...Array.from({ length: 1_000 }, () => ({
            parameter: 'app-secret-1',
            code: '\u001b',
            detail: `${encoded}\n`,
          })),
          5,
        ],
      },
      { code: 'broken', detail: 'x', requestId: 'r', errors: 'app-secret-1' },
    ]
    let body = ''
    const server = createServer((_request, response) => {
      response.writeHead(400, {
        'content-type': 'application/json',
        'x-request-id': 'app-secret-1',
        location: 'https://other.example/of-the-proxy',
        'content-location': '/of-the-proxy',
        link: '</of-the-proxy>; rel=next',
        refresh: '1; url=/of-the-proxy',
        'set-cookie': 'session=of-the-proxy',
      })
      response.end(body)
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => server.close())
    const { port } = server.address() as AddressInfo
    const access: Access = { ...secrets, url: `http://127.0.0.1:${port}`, attempts: 1 }
    for (const each of bodies) {
      body = JSON.stringify(each)
      const failure = await failureOf(client.orders(access))
      const shown = failure.shown + failure.message + JSON.stringify(failure)
      t.notMatch(shown, /of-the-proxy/)
      for (const secret of ['app-secret', 'connection secret', encoded, '%20secret', '\\u001b'])
        t.notOk(shown.includes(secret), `${body.slice(0, 40)} shows no ${secret}`)
      t.notMatch(failure.message, /[\p{Cc}\u2028]/u)
      t.ok(failure.message.length < 25_000)
    }
    body = '['.repeat(1_000_000)
    t.match(await failureOf(client.orders(access)), { code: 'unexpected_response', status: 400 })
  })
}

t.test(
  'TypeScript: `signal` ends a call in a delay and in a response, with its reason',
  async (t) => {
    const reason = new Error('the user has left')
    for (const fault of ['unavailable', 'dripped body', 'silent'] as const) {
      const controller = new AbortController()
      const { signal } = controller
      const before = async () => {
        setTimeout(() => controller.abort(reason), 100)
      }
      const options = { target: service.url, fault: () => fault, retryAfter: '30', before }
      const proxy = await startFaultProxy(t, options)
      const api = new InvestmentData({ baseUrl: proxy.url, token: caller.token })
      const connection = api.connection(caller.connection.token)
      await t.rejects(connection.transferOrders({ signal }), reason, fault)
      await t.rejects(connection.transferOrders({ signal }), reason, 'aborted before')
      t.same(proxy.counts, { [fault]: 1 })
    }
  },
)

t.test('TypeScript: an app that stops reading an export: its connection closes', async (t) => {
  let connections = 0
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/csv; charset=utf-8' }).write('id\n')
  })
  server.on('connection', (socket) => {
    connections += 1
    socket.on('close', () => {
      connections -= 1
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => server.close().closeAllConnections())
  const { port } = server.address() as AddressInfo
  const api = new InvestmentData({ baseUrl: `http://127.0.0.1:${port}`, token: caller.token })
  const parts = api.connection(caller.connection.token).exportAccountTransactionsCsv()
  for await (const part of parts) {
    t.same([Buffer.from(part).toString(), connections], ['id\n', 1])
    break
  }
  await until('the connection is closed', () => connections === 0)
})

t.test('TypeScript: a call leaves no listener on its `signal`', async (t) => {
  const { signal } = new AbortController()
  const fault = (n: number) => (n === 0 ? 'unavailable' : 'none')
  const proxy = await startFaultProxy(t, { target: service.url, fault })
  const api = new InvestmentData({ baseUrl: proxy.url, token: caller.token, pageSize: 10 })
  const connection = api.connection(caller.connection.token)
  let rows = 0
  for await (const _ of connection.portfolioTransactions({ signal })) rows += 1
  t.equal(rows, 25)
  t.equal((await connection.transferOrders({ signal })).length, 2)
  t.strictSame(getEventListeners(signal, 'abort'), [])
})

t.test('options of the clients', async (t) => {
  /** Invalid options end in an error with a sentence when the client is constructed. */
  const valid = { baseUrl: 'http://127.0.0.1:3000', token: 'secret-token' }
  const number = (name: string, from: number, to: number) =>
    `${name} must be a number from ${from} to ${to}`

  const DAY_MS = 86_400_000
  const wrongNumbers = [Number.NaN, Number.POSITIVE_INFINITY, -1, '5', null, {}, true, 1n]

  t.test('wrong numbers', async (t) => {
    for (const value of wrongNumbers) {
      const cases: [object, string][] = [
        [{ timeoutMs: value }, number('timeoutMs', 1, DAY_MS)],
        [{ callTimeoutMs: value }, number('callTimeoutMs', 1, DAY_MS)],
        [{ pageSize: value }, 'pageSize must be an integer from 1 to 10000'],
        [{ retry: { attempts: value } }, 'retry.attempts must be an integer from 1 to 1000'],
        [{ retry: { baseDelayMs: value } }, number('retry.baseDelayMs', 0, DAY_MS)],
        [{ retry: { maxDelayMs: value } }, number('retry.maxDelayMs', 0, DAY_MS)],
      ]
      for (const [options, message] of cases)
        t.throws(() => new InvestmentData({ ...valid, ...options }), { name: 'TypeError', message })
    }
    for (const options of [{ timeoutMs: 0 }, { timeoutMs: 2 ** 31 }, { pageSize: 10_001 }])
      t.throws(() => new InvestmentData({ ...valid, ...options }), TypeError)
    for (const options of [{ pageSize: 1.5 }, { pageSize: 0 }, { retry: { attempts: 0 } }])
      t.throws(() => new InvestmentData({ ...valid, ...options }), TypeError)
  })

  const API_IN_URL = 'baseUrl must not have the path /api/v1: the client adds it'

  t.test('wrong types of the other options', async (t) => {
    const cases: [object, string][] = [
      [{ token: undefined }, 'token must be 1 to 8192 visible ASCII characters'],
      [{ token: '' }, 'the token is empty: is the variable set?'],
      [{ token: 5 }, 'token must be 1 to 8192 visible ASCII characters'],
      [{ token: 'secret-token\n' }, 'token must be 1 to 8192 visible ASCII characters'],
      [{ baseUrl: null }, 'baseUrl must be an http or https URL without credentials'],
      [{ baseUrl: 'xhttp://host' }, 'baseUrl must be an http or https URL without credentials'],
      [
        { baseUrl: 'ftp://secret-token' },
        'baseUrl must be an http or https URL without credentials',
      ],
      [{ baseUrl: 'https://secret-token/api/v1' }, API_IN_URL],
      [{ baseUrl: 'https://host/data/api/v1/' }, API_IN_URL],
      [{ baseUrl: 'https://host/api/v1/queries/connections' }, API_IN_URL],
      [{ retry: 3 }, 'retry must be an object'],
      [{ retry: null }, 'retry must be an object'],
      [{ onAttempt: 'log' }, 'onAttempt must be a function'],
      [{ onWarning: {} }, 'onWarning must be a function'],
      [{ fetch: 1 }, 'fetch must be a function'],
    ]
    for (const [options, message] of cases)
      t.throws(() => new InvestmentData({ ...valid, ...options } as typeof valid), {
        name: 'TypeError',
        message,
      })
  })

  t.test('wrong parameters of a connection and of a list', async (t) => {
    const api = new InvestmentData(valid)
    for (const token of ['', '.', '..', 'a\ud800', undefined, 5])
      t.throws(() => api.connection(token as string), {
        name: 'TypeError',
        message: 'the token of a connection must be a text other than "." and ".."',
      })
    for (const traceId of ['', 'a b', 'é', 'x'.repeat(129)])
      t.throws(() => api.connection('token', { traceId }), TypeError)
    const connection = api.connection('token')
    for (const limit of [0, 1.5, '20', Number.NaN])
      await t.rejects(connection.accountTransactions({ limit: limit as number }).next(), {
        name: 'TypeError',
        message: 'limit must be an integer from 1 to 2147483647',
      })
    const from = new Date() as unknown as string
    for (const rows of [
      connection.portfolioTransactions({ from }),
      connection.exportAccountTransactionsCsv({ from }),
    ])
      await t.rejects(rows.next() as Promise<unknown>, {
        message: 'from must be a text such as 2025-03-14',
      })
  })

  t.test('a store for a connection without a name', async (t) => {
    const store = () =>
      new SqliteStore(new DatabaseSync(':memory:'), undefined as unknown as string)
    t.throws(store, { name: 'TypeError', message: 'connection must be a text' })
  })
})
