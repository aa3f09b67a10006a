import t from 'tap'
import { ProblemCodes } from '../../src/schemas/problem.ts'
import { startService } from '../support/service.ts'

const service = await startService(t)

t.test(
  'order of the page: introduction, operations, sections of the document, fields',
  async (t) => {
    const { text } = await service.get('/docs')
    const { description } = JSON.parse((await service.get('/openapi.json')).text).info
    const sections = [...description.matchAll(/^## (.*)$/gm)].map(([, name]) => name)
    const headings = [...text.matchAll(/<h2 id="[^"]*"><a [^>]*>(.*?)<\/a>/g)].map(
      ([, name]) => name,
    )
    t.same(headings.slice(0, 2), ['Operations', sections[0]])
    t.same(headings.slice(1, 1 + sections.length), sections)
    t.ok(text.indexOf('Each request needs two credentials') < text.indexOf('id="operations"'))
  },
)

t.test('links of the page: each anchor exists once, also one for each error code', async (t) => {
  const { text } = await service.get('/docs')
  const ids = [...text.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id)
  t.equal(new Set(ids).size, ids.length)
  const targets = [...text.matchAll(/href="#([^/"][^"]*)"/g)].map(([, id]) => id)
  t.strictSame(
    targets.filter((id) => !ids.includes(id)),
    [],
  )
  for (const code of Object.keys(ProblemCodes)) t.ok(targets.includes(code), code)
})

t.test('content security policy: no frames, no foreign scripts', async (t) => {
  const { headers } = await service.get('/docs')
  const policy = String(headers.get('content-security-policy'))
  t.notMatch(policy, /unsafe|https?:|\*/)
  t.match(policy, /default-src 'none';.*frame-ancestors 'none'/)
  t.equal(headers.get('x-content-type-options'), 'nosniff')
  t.equal((await service.get('/docs/yaml')).status, 404, 'YAML would round the numbers')
})

t.test('files of the page: compressed, and 304 for one that the client has', async (t) => {
  const names = ['page.css', 'page.js', 'code-samples.js', 'icon.svg']
  const files = ['/openapi.json', '/docs', ...names.map((name) => `/docs/static/${name}`)]
  for (const path of files) {
    const texts = new Set<string>()
    for (const encoding of ['br', 'gzip', 'identity', 'zstd']) {
      const response = await service.get(path, { headers: { 'accept-encoding': encoding } })
      const expected = ['br', 'gzip'].includes(encoding) ? encoding : null
      t.equal(response.headers.get('content-encoding'), expected, `${path} in ${encoding}`)
      texts.add(response.text)
      const headers = { 'if-none-match': String(response.headers.get('etag')) }
      t.equal((await service.get(path, { headers })).status, 304)
    }
    t.equal(texts.size, 1, 'one text')
  }
  t.equal((await fetch(`${service.url}/docs/`)).url, `${service.url}/docs`)
  t.equal((await service.get('/docs/static/package.json')).status, 404)
})

t.test('DOCS_PAGE=false: 404 instead of the page, and the document', async (t) => {
  const { get } = await startService(t, { environment: { DOCS_PAGE: 'false' } })
  for (const path of ['/', '/docs', '/docs/', '/docs/json', '/docs/static/page.js']) {
    t.equal((await get(path)).status, 404, path)
  }
  t.equal((await get('/openapi.json')).status, 200)
})
