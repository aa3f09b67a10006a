import t from 'tap'
import { sendRaw } from '../support/raw-http.ts'
import { addCaller } from '../support/rows.ts'
import { startService } from '../support/service.ts'

const service = await startService(t)
const { token, connection } = await addCaller(service.db)

t.test(
  'error: its link leads to its section of the page /docs, from each depth of the path',
  async (t) => {
    const { text: page } = await service.get('/docs')
    const errors = [
      [`${connection.portfolio}?limit=0`, token, 'invalid_request'],
      [connection.portfolio, 'unknown', 'invalid_token'],
      [connection.orders.replace(connection.token, 'none'), token, 'connection_not_found'],
      ['/nope', token, 'route_not_found'],
      ['/a/b//c?d=/e/f', token, 'route_not_found'],
      ['/%zz', token, 'malformed_request'],
    ] as const
    for (const [path, credentials, code] of errors) {
      const { headers, json } = await service.get(path, { token: credentials })
      t.equal(json().code, code)
      const [, target = ''] = /^<([^>]+)>; rel="help"$/.exec(String(headers.get('link'))) ?? []
      t.notMatch(target, connection.token)
      t.equal(new URL(target, `http://x${path}`).href, `http://x/docs#${code}`, path)
      const proxied = new URL(target, `http://x/prefix${path}`)
      t.equal(proxied.pathname, '/prefix/docs', 'behind a proxy that adds a path')
      t.match(page, `id="${code}"`)
    }
  },
)

t.test('error without a link: a very long path, and a target that is no path', async (t) => {
  const { headers } = await service.get(`/${'a/'.repeat(500)}`)
  t.notOk(headers.has('link'))
  const bytes = 'GET * HTTP/1.1\r\nHost: x\r\n\r\n'
  const { responses } = await sendRaw({ port: service.port, bytes })
  t.notOk(responses[0]?.headers.has('link'))
})

t.test('DOCS_PAGE=false: no error has a link', async (t) => {
  const without = await startService(t, { environment: { DOCS_PAGE: 'false' } })
  for (const path of ['/nope', '/%zz', connection.portfolio])
    t.notOk((await without.get(path)).headers.has('link'), path)
})

t.test('404 of an unknown path: its detail lists the paths of the API', async (t) => {
  const { detail } = (await service.get('/portfolio/transactions')).json()
  for (const path of ['portfolios/transactions', 'accounts/transactions', 'assets-transfer'])
    t.match(detail, `/api/v1/queries/connections/{token}/${path}`)
})
