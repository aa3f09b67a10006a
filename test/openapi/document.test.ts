import { globSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import createClient from 'openapi-fetch'
import t from 'tap'
import type { components, paths } from '../../docs/reference/openapi.ts'
import { DEMO } from '../../seeds/sample-data.ts'
import { effectOf, type Row } from '../../src/http/docs-page/calculator.js'
import { codeSamples, INSTALL, PLACEHOLDER } from '../../src/http/openapi/code-samples.js'
import { lists as routes } from '../../src/routes/lists.ts'
import { lists as definitions } from '../../src/schemas/lists.ts'
import { ProblemCodes } from '../../src/schemas/problem.ts'
import { breakingChanges } from '../../tools/docs/breaking-changes.ts'
import { documentFaults } from '../../tools/docs/document-faults.ts'
import { lastRelease, parseContract } from '../../tools/docs/releases.ts'
import { DEMO_TOKEN, startSeededService } from '../support/seeded-service.ts'
import { startService } from '../support/service.ts'
import { withLengths } from '../support/with-lengths.ts'

interface ClosedList {
  enum: string[]
  'x-enum-descriptions': string[]
  'x-share-impact'?: Record<string, string | null>
}

interface Document {
  info: { version: string; license: object; contact?: object }
  servers: { url: string }[]
  paths: Record<string, { get: DocumentedOperation & { parameters: { name: string }[] } }>
  components: { schemas: Record<'PortfolioTransactionType' | 'AccountTransactionType', ClosedList> }
}

/** Responses of an operation, with the examples of its errors. */
interface DocumentedOperation {
  operationId: string
  responses: Record<
    string,
    {
      headers: Record<string, object>
      content: Record<string, { examples?: Record<string, { value: object }> }>
    }
  >
}

/** Effect of each type on the number of shares (section 2.4). The specification does not show that of EXPIRATION. */
const IMPACTS: Record<string, string | null> = {
  BUY: '+',
  COMPENSATION: '=',
  COUPON: '=',
  DELISTING: '-',
  DIVIDENDS: '=',
  EXPIRATION: null,
  INHERITANCE_OR_DONATION_TRANSFER_IN: '+',
  INHERITANCE_OR_DONATION_TRANSFER_OUT: '-',
  ISIN_CHANGE_BUY: '+',
  ISIN_CHANGE_SELL: '-',
  MERGER_BUY: '+',
  MERGER_SELL: '-',
  OFF_MARKET_BUY: '+',
  OFF_MARKET_SELL: '-',
  PRODUCT_CHANGE_BUY: '+',
  PRODUCT_CHANGE_SELL: '-',
  RIGHTS_CONVERSION_BUY: '+',
  RIGHTS_CONVERSION_SELL: '-',
  RIGHTS_EXCLUSION: '-',
  RIGHTS_ISSUE: '+',
  SELL: '-',
  SHARE_ISSUE_PREMIUM: '=',
  SPINOFF: '+',
  SPLIT_BUY: '+',
  SPLIT_SELL: '-',
  TRANSFER_IN: '+',
  TRANSFER_OUT: '-',
  UNKNOWN: '=',
}

const service = await startService(t)
const served = await service.get('/openapi.json')
const document = served.json() as Document

const { version, contract } = await lastRelease()

t.test('304: If-None-Match with the ETag or *', async (t) => {
  const statusOf = async (known: string) =>
    (await service.get('/openapi.json', { headers: { 'if-none-match': known } })).status
  const etag = String((await service.get('/openapi.json')).headers.get('etag'))
  t.strictSame(await Promise.all(['*', etag, `"a", ${etag}`, '"*"'].map(statusOf)), [
    ...[304, 304, 304, 200],
  ])
})

t.test('PUBLIC_URL and CONTACT_URL: server and contact of the document', async (t) => {
  const environment = {
    PUBLIC_URL: 'https://api.example/api/',
    CONTACT_URL: 'https://support.example/?team=data',
  }
  const { get } = await startService(t, { environment })
  const { info, servers, paths } = (await get('/openapi.json')).json() as Document
  t.strictSame(servers, [{ url: 'https://api.example/api' }])
  t.strictSame(info.contact, { url: environment.CONTACT_URL })
  t.strictSame(Object.keys(paths), Object.keys(document.paths), 'the paths do not change')
  t.match(document.servers, withLengths([{ url: '/' }]))
  t.equal(document.info.contact, undefined)
})

t.test(
  'imports into Postman and Bruno: an absolute server, and no example that excludes others',
  async (t) => {
    const tokens = `${DEMO_TOKEN},${DEMO.wealth.connections.small.token}`
    const { get } = await startService(t, { environment: { DEMO_TOKENS: tokens } })
    const { servers, paths } = (await get('/openapi.json')).json() as Document
    t.match(servers[0]?.url, /^http:\/\/127[.]0[.]0[.]1:\d+$/)
    const [portfolio] = Object.values(paths)
    for (const name of ['since', 'version']) {
      const found = portfolio?.get.parameters.find((each) => each.name === name)
      t.ok(found, name)
      t.notMatch(JSON.stringify(found), /"examples?":/, name)
    }
  },
)

t.test('version and license: those of package.json', async (t) => {
  const { version, license } = JSON.parse(await readFile('package.json', 'utf8'))
  t.equal(document.info.version, version)
  t.equal(license, 'UNLICENSED')
  const identifier = 'LicenseRef-All-rights-reserved'
  t.strictSame(document.info.license, { name: 'All rights reserved', identifier })
})

t.test('media types: the first one is the default of the service', (t) => {
  for (const [path, { get }] of Object.entries(document.paths))
    t.equal(Object.keys(get.responses[200]?.content ?? {})[0], 'application/json', path)
  t.end()
})

t.test('types of transactions: a meaning and an impact for each value', async (t) => {
  const { PortfolioTransactionType: portfolio, AccountTransactionType: account } =
    document.components.schemas
  t.equal(portfolio.enum.length, 28)
  t.equal(account.enum.length, 17)
  for (const { enum: values, 'x-enum-descriptions': meanings } of [portfolio, account]) {
    t.equal(new Set(meanings).size, values.length)
  }
  const impacts = portfolio['x-share-impact'] ?? {}
  t.strictSame(impacts, IMPACTS)
  t.strictSame(portfolio.enum, Object.keys(IMPACTS))
  for (const [index, value] of portfolio.enum.entries()) {
    const impact = IMPACTS[value]
    const meaning = String(portfolio['x-enum-descriptions'][index])
    // Programs read the extension, and people the meaning.
    t.equal(/^\((.)\) /.exec(meaning)?.[1] ?? null, impact, value)
    // The page calculates the results of its stories with a table of its own.
    t.equal(effectOf({ type: value } as Row) ?? null, impact, `calculator.js: ${value}`)
  }
})

t.test('GET /docs/json: redirect to that document', async (t) => {
  const response = await fetch(`${service.url}/docs/json`)
  t.equal(response.url, `${service.url}/openapi.json`)
})

t.test('clients: the samples have their names, and the documents install files', async (t) => {
  const { name } = JSON.parse(await readFile('clients/typescript/package.json', 'utf8'))
  const { info, paths } = JSON.parse((await service.get('/openapi.json')).text)
  t.match(codeSamples('', String(Object.keys(paths)[0]))[1]?.source, `from "${name}"`)
  t.match(info.description, `${INSTALL.npm} `)
  t.match(info.description, `${INSTALL.pip} `)
  t.match(await readFile('clients/typescript/README.md', 'utf8'), `${INSTALL.npm}\n`)
  t.match(await readFile('clients/python/README.md', 'utf8'), `${INSTALL.pip}\n`)
})

t.test(
  'documents: no command installs a client by a name, which anybody could publish',
  async (t) => {
    const files = globSync(['*.md', 'docs/**/*.{md,json}', 'src/**/*.{md,html}', 'clients/**/*.md'])
    t.ok(files.length > 30)
    for (const file of files.filter((path) => !path.includes('node_modules'))) {
      const text = await readFile(file, 'utf8')
      t.notMatch(
        text,
        /(npm|yarn|pnpm) (install|i|add) (-\S+ )*@investment-data|npx @investment-data/,
        file,
      )
      t.notMatch(text, /pip install (-\S+ )*investment[-_]data/, file)
    }
  },
)

t.test('PUBLIC_URL: the address in all samples', async (t) => {
  const { get } = await startService(t, { environment: { PUBLIC_URL: 'https://api.example/v' } })
  const { text } = await get('/openapi.json')
  t.notMatch(text, PLACEHOLDER)
  const { paths, info } = JSON.parse(text)
  const samples = Object.values<{ get: { 'x-codeSamples': { source: string }[] } }>(paths)
    .flatMap((path) => path.get['x-codeSamples'])
    .map(({ source }) => source)
  t.equal(samples.length, 9)
  for (const written of [...samples, info.description]) {
    t.match(written, 'https://api.example/v')
  }
})

t.test(`GET /openapi.json: compatible with release ${version}`, async (t) => {
  const { text } = await (await startService(t)).get('/openapi.json')
  t.strictSame(
    breakingChanges(contract, parseContract(text)),
    [],
    'see "Compatibility" in src/http/openapi/guide.md',
  )
})

t.test('lists of src/schemas and of src/routes: the same', async (t) => {
  t.same(
    routes.map(({ list }) => list),
    definitions,
  )
})

t.test('document: no empty enum, and a description and a schema for each part', async (t) => {
  t.strictSame(documentFaults(JSON.parse(served.text)), [])
})

t.test('document with a fault: the check names it', async (t) => {
  const path = '/api/v1/queries/connections/{token}/accounts/transactions'
  const place = `GET ${path}`
  // biome-ignore lint/suspicious/noExplicitAny: each case changes another part of the document.
  const cases: Record<string, (document: any) => void> = {
    '/components/schemas/AccountTransactionType: empty enum': ({ components }) => {
      components.schemas.AccountTransactionType.enum = []
    },
    [`/paths/${path}/get/parameters/0/schema: empty enum`]: ({ paths }) => {
      paths[path].get.parameters[0].schema.enum = []
    },
    [`${place}: parameter from without a description`]: ({ paths }) => {
      delete paths[path].get.parameters[0].description
    },
    [`${place}: parameter from without a schema`]: ({ paths }) => {
      paths[path].get.parameters[0].schema = {}
    },
    [`${place}: 401: header WWW-Authenticate without a schema`]: ({ paths }) => {
      paths[path].get.responses[401].headers['WWW-Authenticate'].schema = {}
    },
    [`${place}: 401: header WWW-Authenticate without a description`]: ({ paths }) => {
      delete paths[path].get.responses[401].headers['WWW-Authenticate'].description
    },
    [`${place}: 200: text/csv without a schema`]: ({ paths }) => {
      delete paths[path].get.responses[200].content['text/csv'].schema
    },
    [`${place}: 200: application/json has an example without rows: the sample data need some`]: ({
      paths,
    }) => {
      paths[path].get.responses[200].content['application/json'].examples.sampleData.value.items =
        []
    },
  }
  for (const [fault, damage] of Object.entries(cases)) {
    const damaged = JSON.parse(served.text)
    damage(damaged)
    t.strictSame(documentFaults(damaged), [fault])
  }
})

t.test('each error: its status and its headers are in each response of the document', async (t) => {
  const { paths } = JSON.parse((await (await startService(t)).get('/openapi.json')).text)
  const operations = Object.values<{ get: DocumentedOperation }>(paths)
  for (const [code, { status, ...other }] of Object.entries(ProblemCodes)) {
    const responses = operations.flatMap(({ get }) => get.responses[status] ?? [])
    t.ok(responses.length > 0, `${code}: ${status}`)
    const headers = 'headers' in other ? Object.keys(other.headers) : []
    for (const response of responses) {
      const documented = Object.keys(response.headers).map((name) => name.toLowerCase())
      t.same(
        headers.filter((name) => !documented.includes(name.toLowerCase())),
        [],
        code,
      )
    }
  }
})

t.test('page /docs', async (t) => {
  const service = await startService(t)

  t.test(
    'order of the page: first request, operations, sections of the document, fields',
    async (t) => {
      const { text } = await service.get('/docs')
      const { description } = JSON.parse((await service.get('/openapi.json')).text).info
      const sections = [...description.matchAll(/^## (.*)$/gm)].map(([, name]) => name)
      const headings = [...text.matchAll(/<h2 id="[^"]*"><a [^>]*>(.*?)<\/a>/g)].map(
        ([, name]) => name,
      )
      t.same(headings, ['First request', 'Operations', ...sections, 'Fields'])
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

  t.test(
    'each error: cause, remedy, the operations that return it, and its response',
    async (t) => {
      const { text } = await service.get('/docs')
      const { paths } = JSON.parse((await service.get('/openapi.json')).text)
      for (const code of Object.keys(ProblemCodes)) {
        const [section = ''] = new RegExp(`<h3 id="${code}">.*?(?=<h[23] )`, 's').exec(text) ?? []
        t.match(section, /<strong>\d{3} [\w ]+\.<\/strong>/, code)
        t.match(section, /<strong>Cause:<\/strong> [\w<]/, code)
        t.match(section, /<strong>Remedy:<\/strong> [\w<]/, code)
        const [, example = ''] = /<code>(\{.*?\})<\/code>/s.exec(section) ?? []
        const shown = JSON.parse(
          example.replace(/&#(\d+);/g, (_, number) => String.fromCharCode(number)),
        )
        const operations = Object.values<{ get: DocumentedOperation }>(paths)
        const returning = operations.filter(({ get }) => {
          const { examples } = get.responses[shown.status]?.content['application/json'] ?? {}
          const returned = examples?.[code]
          // responses.test.ts compares these examples with the responses of the service.
          if (returned) t.same(shown, returned.value, code)
          return returned !== undefined
        })
        // The section names them, unless all operations return the error.
        const named = returning.length === operations.length ? [] : returning
        for (const { operationId } of operations.map(({ get }) => get))
          t.equal(
            section.includes(`href="#${operationId}"`),
            named.some(({ get }) => get.operationId === operationId),
            code,
          )
        if (code !== 'route_not_found') continue
        const { requestId, ...body } = (await service.get('/api/v1/unknown')).json()
        t.same({ ...shown, requestId }, { ...body, requestId }, 'the response to an unknown path')
      }
    },
  )

  t.test('content security policy: no frames, no foreign scripts', async (t) => {
    const { headers } = await service.get('/docs')
    const policy = String(headers.get('content-security-policy'))
    t.notMatch(policy, /unsafe|https?:|\*/)
    t.match(policy, /default-src 'none';.*frame-ancestors 'none'/)
    t.match(policy, /script-src 'self'/, 'the policy of the page, and not that of data')
    t.equal(headers.get('cross-origin-opener-policy'), 'same-origin')
    t.equal(headers.get('x-content-type-options'), 'nosniff')
    t.equal((await service.get('/docs/yaml')).status, 404, 'YAML would round the numbers')
  })

  t.test(
    '/llms.txt and /docs.md: few enough tokens to be read at once, with the address of the service',
    async (t) => {
      const PUBLIC_URL = 'https://api.example/investments/'
      const { get } = await startService(t, { environment: { PUBLIC_URL } })
      let bytes = 0
      for (const path of ['/llms.txt', '/docs.md']) {
        const { text, headers } = await get(path)
        t.match(
          headers.get('content-type'),
          path === '/docs.md' ? /^text\/markdown/ : /^text\/plain/,
        )
        t.match(text, 'https://api.example/investments/api/v1/queries/connections/')
        t.notMatch(text, /HOST/)
        t.notMatch(text, /\]\(#/, 'no link within a file that is read at once')
        bytes += Buffer.byteLength(text)
      }
      // A token has about three bytes. Each list may add as many tokens as those of today.
      const allowed = 7_000 + 400 * routes.length
      t.ok(bytes / 3 <= allowed, `${Math.round(bytes / 3)} tokens`)
      t.match(
        (await get('/docs')).text,
        '<link rel="alternate" type="text/markdown" href="docs.md">',
      )
      const links = [...(await get('/llms.txt')).text.matchAll(/\]\(([^)]+)\)/g)]
      for (const [, link = ''] of links) t.equal((await get(`/${link}`)).status, 200, link)
    },
  )

  t.test('files of the page: compressed, and 304 for one that the client has', async (t) => {
    const files = [
      '/openapi.json',
      '/docs',
      '/docs.md',
      '/llms.txt',
      '/docs/static/page.css',
      '/docs/static/page.js',
      '/docs/static/minisearch.js',
      '/docs/static/icon.svg',
      '/docs/openapi/code-samples.js',
    ]
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
    for (const path of [
      '/',
      '/docs',
      '/docs.md',
      '/llms.txt',
      '/docs/',
      '/docs/json',
      '/docs/static/page.js',
    ]) {
      t.equal((await get(path)).status, 404, path)
    }
    t.equal((await get('/openapi.json')).status, 200)
  })
})

t.test('generated client', async (t) => {
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
})
