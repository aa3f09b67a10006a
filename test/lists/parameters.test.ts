import t from 'tap'
import { readConfig } from '../../src/config.ts'
import { httpOptions } from '../../src/http/http-server.ts'
import { parseQuery } from '../../src/http/query-string.ts'
import { MAX_PARAMETER_ERRORS } from '../../src/schemas/problem.ts'
import { filtersOf, PageQuery } from '../../src/schemas/request.ts'
import { isProblem } from '../support/problem.ts'
import { addCaller, addPortfolioTransactions, listNames } from '../support/rows.ts'
import { startService } from '../support/service.ts'
import { withLengths } from '../support/with-lengths.ts'

const { db, get } = await startService(t)
const { token, connection } = await addCaller(db)
await addPortfolioTransactions(db, connection, {}, {}, {})

const words = (text: string) => text.trim().split(/\s+/)

/** Errors of a query as `parameter code`, sorted. */
async function errorsOf(path: string, query: string): Promise<string[]> {
  const response = await get(`${path}?${query}`, { token })
  if (response.status === 200) return []
  if (response.status !== 400) return [`status ${response.status}`]
  const { errors = [] } = response.json()
  return errors.map((e: Record<string, string>) => `${e.parameter} ${e.code}`).sort()
}

for (const list of listNames) {
  const path = connection[list]

  t.test(
    `400, ${list}: each filter together with since, whose changes are of all rows`,
    async (t) => {
      for (const filter of Object.keys(filtersOf({}))) {
        const errors = await errorsOf(path, `since=start&${filter}=2025-01-01`)
        t.ok(errors.includes(`${filter} excluded_parameter`), filter)
      }
    },
  )

  t.test(`400, ${list}: limit and page consist of digits (contract 2)`, async (t) => {
    const others = words(`
      +1 -1 1.0 1e3 0x10 abc 1,000 NaN Infinity %201 1%20 1+ 1%0A %00 1%00 %D9%A1
      %EF%BC%91 %zz %ff 1; null`).concat('')
    for (const value of others) {
      for (const name of ['limit', 'page']) {
        t.strictSame(await errorsOf(path, `${name}=${value}`), [`${name} invalid_format`], value)
      }
    }
    t.strictSame(await errorsOf(path, 'limit'), ['limit invalid_format'], 'without a value')
    t.strictSame(await errorsOf(path, 'limit=%31%30&page=0&p%61ge2=1'), ['page2 unknown_parameter'])
    t.strictSame(await errorsOf(path, 'l%69mit=%31%30'), [], 'percent-encoding is decoded')
  })

  t.test(`400, ${list}: limit is 1 to 10000 (contract 2)`, async (t) => {
    for (const value of ['1', '10000', '0000001']) {
      const response = await get(`${path}?limit=${value}`, { token })
      t.equal(response.json().limit, Number(value))
    }
    for (const value of ['0', '00', '10001', '4294967297', '9'.repeat(400)]) {
      const response = await get(`${path}?limit=${value}`, { token })
      const [error] = isProblem(t, response, 'invalid_request').errors ?? []
      t.match(error, { parameter: 'limit', code: 'out_of_range', detail: /\b1\b.*\b10000\b/ })
    }
  })

  t.test(`400, ${list}: page is 0 to 2147483647 (contract 2)`, async (t) => {
    const response = await get(`${path}?limit=10000&page=2147483647`, { token })
    t.equal(response.json().page, 2147483647)
    t.same(response.json().items, [])
    for (const value of ['2147483648', '4294967296', '9'.repeat(400)]) {
      const beyond = await get(`${path}?page=${value}`, { token })
      const [error] = isProblem(t, beyond, 'invalid_request').errors ?? []
      t.match(error, { parameter: 'page', code: 'out_of_range', detail: /2147483647/ })
    }
  })

  t.test(`400, ${list}: from and to are existing days, as YYYY-MM-DD (contract 3)`, async (t) => {
    const days = [
      '2024-02-29',
      '2000-02-29',
      '2025-12-31',
      '0001-01-01',
      '9999-12-31',
      '0004-02-29',
    ]
    const others = words(`
      2025-02-29 2025-02-30 1900-02-29 2100-02-29 2025-04-31 2025-00-10 2025-13-01
      2025-01-00 2025-01-32 0000-01-01 0000-12-31 10000-01-01 -0001-01-01 %2B2025-01-01
      2025-1-1 25-01-01 20250101 2025-01-01T00:00:00 2025-01-01Z 2025-01-01%20BC
      %202025-01-01 2025-01-01%0A 2025/01/01 01.01.2025 infinity -infinity now today epoch
      2025-W01-1 2025-001 %D9%A2025-01-01 2025-01-01%00`).concat('')
    for (const name of ['from', 'to']) {
      for (const day of days) t.strictSame(await errorsOf(path, `${name}=${day}`), [], day)
      for (const day of others) {
        t.strictSame(await errorsOf(path, `${name}=${day}`), [`${name} invalid_format`], day)
      }
    }
  })

  t.test(`400, ${list}: from is not after to (contract 3)`, async (t) => {
    t.strictSame(await errorsOf(path, 'from=2025-01-02&to=2025-01-01'), ['from invalid_range'])
    t.strictSame(await errorsOf(path, 'from=2025-01-01&to=2025-01-01'), [])
    t.strictSame(await errorsOf(path, 'from=0999-12-31&to=1000-01-01'), [])
  })

  t.test(`400, ${list}: a repeated parameter, even with one value (contract 5)`, async (t) => {
    for (const name of ['limit', 'page']) {
      t.strictSame(await errorsOf(path, `${name}=1&${name}=1`), [`${name} repeated_parameter`])
    }
    for (const name of ['from', 'to']) {
      const twice = `${name}=2025-01-01&${name}=2025-01-02`
      t.strictSame(await errorsOf(path, twice), [`${name} repeated_parameter`])
    }
    t.strictSame(await errorsOf(path, 'limit=1&l%69mit=2&limit=x'), ['limit repeated_parameter'])
  })

  t.test(
    `400, ${list}: an unknown parameter; the error lists the known ones (contract 5)`,
    async (t) => {
      const others = words(`
      offset Limit LIMIT limit[] limit[0] from[x] limit%20 token __proto__ constructor
      toString hasOwnProperty length %00 %F0%9F%98%80`).concat('')
      for (const name of others) {
        const response = await get(`${path}?${name}=1`, { token })
        const { errors = [] } = isProblem(t, response, 'invalid_request', `?${name}=1`)
        const parameter = decodeURIComponent(name)
        const [{ detail = '', ...error } = {}] = errors
        t.strictSame(error, { parameter, code: 'unknown_parameter' })
        t.match(
          detail,
          /^There is no such parameter\.( Did you mean \w+\?)? The parameters are from, to, limit, page, since, version\.$/,
        )
      }
      for (const query of ['', '&', '&&'])
        t.strictSame(await errorsOf(path, query), [], `?${query}`)
      for (const query of ['=1', 'x=1', 'ab=1', '%F0%9F%92%B6=1']) {
        const { detail } = isProblem(t, await get(`${path}?${query}`, { token }), 'invalid_request')
        t.notMatch(detail, /Did you mean/, `?${query} is like no parameter`)
      }
    },
  )

  t.test(`400, ${list}: one response reports all errors (contract 5)`, async (t) => {
    const query =
      'limit=1e3&page=2147483648&from=2025-02-30&to=x&foo=1&bar=2&foo=3&limit%20=1&offset'
    t.strictSame(await errorsOf(path, query), [
      'bar unknown_parameter',
      'foo unknown_parameter',
      'from invalid_format',
      'limit  unknown_parameter',
      'limit invalid_format',
      'offset unknown_parameter',
      'page out_of_range',
      'to invalid_format',
    ])
    t.strictSame(await errorsOf(path, 'limit=0&limit=1&from=2025-02-02&to=2025-01-01&page=-1'), [
      'from invalid_range',
      'limit repeated_parameter',
      'page invalid_format',
    ])
  })
}

t.test(
  '400: `detail` has the first error, and a suggestion for a misspelt parameter',
  async (t) => {
    const detailOf = async (path: string) => (await get(path, { token })).json().detail
    t.equal(
      await detailOf(`${connection.portfolio}?form=2025-01-01&to=2025-02-30&page=x`),
      'form: There is no such parameter. Did you mean from? ' +
        'The parameters are from, to, limit, page, since, version. (and 2 more in errors)',
    )
    t.equal(
      await detailOf(`${connection.portfolio}?to=2025-02-30`),
      'to must be a day that exists, as YYYY-MM-DD.',
    )
    t.equal(
      await detailOf(`${connection.orders}?limit=1`),
      'limit: This operation has no query parameters.',
    )
    t.notMatch(await detailOf(`${connection.portfolio}?${'x'.repeat(9_000)}=1`), 'xxx')
  },
)

t.test('400: more than 20 errors: the first 20 are listed (contract 5)', async (t) => {
  const names = Array.from({ length: 3_000 }, (_, n) => `a${n.toString(36)}`)
  const { status, text, json } = await get(`${connection.portfolio}?${names.join('&')}`, { token })
  t.equal(status, 400)
  t.equal(json().errors.length, 20)
  t.match(json().detail, '(and others: errors has the first 20)')
  t.ok(text.length < 4_000)
})

t.test('400: MAX_LIMIT sets the largest limit, and the error names it (contract 2)', async (t) => {
  const other = await startService(t, { environment: { MAX_LIMIT: '2500' } })
  const caller = await addCaller(other.db)
  const path = caller.connection.portfolio
  t.equal((await other.get(`${path}?limit=2500`, caller)).status, 200)
  const { errors } = isProblem(t, await other.get(`${path}?limit=2501`, caller), 'invalid_request')
  t.match(errors, withLengths([{ parameter: 'limit', detail: /2500/ }]))
})

t.test('400, orders: there are no parameters (section 4.3, contract 5)', async (t) => {
  for (const name of ['limit', 'page', 'from', 'to', 'x']) {
    const response = await get(`${connection.orders}?${name}=1`, { token })
    const { errors } = isProblem(t, response, 'invalid_request')
    t.match(
      errors,
      withLengths([
        {
          parameter: name,
          code: 'unknown_parameter',
          detail: /^This operation has no query parameters/,
        },
      ]),
    )
  }
  t.strictSame(await errorsOf(connection.orders, 'limit=1&limit=2&since=x&from=1'), [
    'from unknown_parameter',
    'limit unknown_parameter',
    'since unknown_parameter',
  ])
})

t.test(
  'a query of 3,844 names: the schema compares one more than the errors of a response',
  async (t) => {
    const letters = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'
    const names = [...letters].flatMap((first) => [...letters].map((second) => first + second))
    t.equal(names.length, 3_844)
    const kept = Object.keys(parseQuery(names.join('&')))
    t.equal(kept.length, MAX_PARAMETER_ERRORS + 1)
    t.equal(httpOptions(readConfig({})).routerOptions.querystringParser, parseQuery)
    // Every parameter of a route fits, so a query that is cut has an unknown one.
    t.ok(Object.keys(PageQuery(1).properties).length <= MAX_PARAMETER_ERRORS)
    const { status, json } = await get(`${connection.portfolio}?limit=1&${names.join('&')}`, {
      token,
    })
    t.equal(status, 400)
    t.equal(json().errors.length, MAX_PARAMETER_ERRORS)
    const spread = `${'&'.repeat(1_000)}limit=0`
    t.equal((await get(`${connection.portfolio}?${spread}`, { token })).status, 400, 'not cut')
  },
)
