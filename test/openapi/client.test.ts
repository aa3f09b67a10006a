import createClient from 'openapi-fetch'
import t from 'tap'
import type { components, paths } from '../../docs/reference/openapi.ts'
import { DEMO } from '../../seeds/sample-data.ts'
import { DEMO_TOKEN, startSeededService } from '../support/seeded-service.ts'

/**
 * Code of an app's developer, with the generated client types. `npm run check:types` compiles it; this
 * test runs it with the sample data.
 */
const PORTFOLIO = '/api/v1/queries/connections/{token}/portfolios/transactions'
const ACCOUNT = '/api/v1/queries/connections/{token}/accounts/transactions'
const ORDERS = '/api/v1/queries/connections/{token}/assets-transfer'

const service = await startSeededService(t)
const client = createClient<paths, 'application/json'>({
  baseUrl: service.url,
  headers: { authorization: `Bearer ${DEMO_TOKEN}` },
})
const { large, small, empty } = DEMO.wealth.connections

type Transaction = components['schemas']['PortfolioTransaction']

t.test('all pages of a connection: each row once', async (t) => {
  const rows = new Map<string, Transaction>()
  let total = Number.POSITIVE_INFINITY
  for (let page = 0; page * 2000 < total; page += 1) {
    const { data } = await client.GET(PORTFOLIO, {
      params: { path: { token: large.token }, query: { limit: '2000', page: String(page) } },
    })
    if (data === undefined) throw new Error('no page')
    for (const row of data.items) rows.set(row.transactionId, row)
    total = data.totalItems
  }
  t.ok(total > 5_000)
  t.equal(rows.size, total)
  const unknown = [...rows.values()].filter(({ type }) => type === 'UNKNOWN')
  t.ok(unknown.length > 0)
})

t.test('types: nullable fields and closed lists', async (t) => {
  const path = { token: small.token }
  const { data } = await client.GET(ACCOUNT, { params: { path, query: { from: '2024-07-01' } } })
  const amounts: number[] | undefined = data?.items.map(({ amount }) => amount)
  t.strictSame(amounts, [-0.01, 1.284617, 30.13])
  const investments: (string | null)[] | undefined = data?.items.map((row) => row.investment)
  t.strictSame(investments?.slice(0, 2), [null, null])
  // @ts-expect-error: not a type of an account transaction
  t.notOk(data?.items.some(({ type }) => type === 'BUY'))
  // @ts-expect-error: limit is a string, as in the URL
  await client.GET(ACCOUNT, { params: { path, query: { limit: 1 } } })

  const orders = await client.GET(ORDERS, { params: { path } })
  t.strictSame(
    orders.data?.map(({ assetType, marketer }) => [assetType, marketer?.name]),
    [
      ['STOCK', undefined],
      ['FUND', 'Banco del Ebro, S.A.'],
    ],
  )
  t.strictSame((await client.GET(ORDERS, { params: { path: { token: empty.token } } })).data, [])
})

t.test('error: one of the typed problems', async (t) => {
  const path = { token: DEMO.tax.connections.other.token }
  const { data, error } = await client.GET(ORDERS, { params: { path } })
  t.equal(data, undefined)
  const code: components['schemas']['Problem']['code'] | undefined = error?.code
  t.equal(code, 'connection_not_found')

  const query = { from: '2025-02-30' }
  const invalid = await client.GET(PORTFOLIO, { params: { path, query } })
  t.equal(invalid.error?.errors?.[0]?.parameter, 'from')
})

t.test('If-None-Match with the ETag: 304', async (t) => {
  const path = { token: small.token }
  const first = await client.GET(PORTFOLIO, { params: { path } })
  const header = { 'If-None-Match': String(first.response.headers.get('etag')) }
  const second = await client.GET(PORTFOLIO, { params: { path, header } })
  t.equal(second.response.status, 304)
})
