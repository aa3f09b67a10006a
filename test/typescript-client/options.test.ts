import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { InvestmentData, SqliteStore } from '../../clients/typescript/src/index.ts'

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
    [{ token: 5 }, 'token must be 1 to 8192 visible ASCII characters'],
    [{ token: 'secret-token\n' }, 'token must be 1 to 8192 visible ASCII characters'],
    [{ baseUrl: null }, 'baseUrl must be an http or https URL without credentials'],
    [{ baseUrl: 'xhttp://host' }, 'baseUrl must be an http or https URL without credentials'],
    [{ baseUrl: 'ftp://secret-token' }, 'baseUrl must be an http or https URL without credentials'],
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
  const store = () => new SqliteStore(new DatabaseSync(':memory:'), undefined as unknown as string)
  t.throws(store, { name: 'TypeError', message: 'connection must be a text' })
})
