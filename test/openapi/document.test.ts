import { readFile } from 'node:fs/promises'
import t from 'tap'
import { codeSamples, PLACEHOLDER } from '../../src/http/docs-page/code-samples.js'
import { breakingChanges } from '../../tools/docs/breaking-changes.ts'
import { lastRelease, parseContract } from '../../tools/docs/releases.ts'
import { startService } from '../support/service.ts'

interface ClosedList {
  enum: string[]
  'x-enum-descriptions': string[]
  'x-share-impact'?: Record<string, string | null>
}

interface Document {
  info: { version: string; license: object; contact?: object }
  servers: object[]
  paths: object
  components: { schemas: Record<'PortfolioTransactionType' | 'AccountTransactionType', ClosedList> }
}

const service = await startService(t)
const served = await service.get('/openapi.json')
const document = served.json() as Document

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
  t.match(document.servers, [{ url: '/' }])
  t.equal(document.info.contact, undefined)
})

t.test('version and license: those of package.json', async (t) => {
  const { version, license } = JSON.parse(await readFile('package.json', 'utf8'))
  t.match(document.info, {
    version,
    license: { name: license, identifier: `LicenseRef-${license}` },
  })
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
  t.strictSame(Object.keys(impacts), portfolio.enum)
  t.match(impacts, { BUY: '+', SELL: '-', COUPON: '=', EXPIRATION: null })
  t.strictSame(new Set(Object.values(impacts)), new Set(['+', '-', '=', null]))
})

t.test('GET /docs/json: redirect to that document', async (t) => {
  const response = await fetch(`${service.url}/docs/json`)
  t.equal(response.url, `${service.url}/openapi.json`)
})

t.test('package names: those of clients/', async (t) => {
  const { name } = JSON.parse(await readFile('clients/typescript/package.json', 'utf8'))
  const pyproject = await readFile('clients/python/pyproject.toml', 'utf8')
  const { info, paths } = JSON.parse((await service.get('/openapi.json')).text)
  t.match(info.description, `npm install ${name} `)
  t.match(info.description, `pip install ${/^name = "(.*)"/m.exec(pyproject)?.[1]} `)
  t.match(codeSamples('', String(Object.keys(paths)[0]))[1]?.source, `from "${name}"`)
})

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

const { version, contract } = await lastRelease()

t.test(`GET /openapi.json: compatible with release ${version}`, async (t) => {
  const { text } = await (await startService(t)).get('/openapi.json')
  t.strictSame(breakingChanges(contract, parseContract(text)), [], 'see docs/compatibility.md')
})
