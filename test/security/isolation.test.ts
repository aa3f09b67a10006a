import { sql } from 'kysely'
import t, { type Test } from 'tap'
import { plannerSettings } from '../../src/postgres/statements.ts'
import type { ListRoute } from '../../src/routes/list.ts'
import { lists } from '../../src/routes/lists.ts'
import { addressOf } from '../support/any-list.ts'
import { openClient } from '../support/database.ts'
import { startIssuer } from '../support/issuer.ts'
import { loginOfService } from '../support/logins.ts'
import { scrape } from '../support/metrics.ts'
import { fc, runs } from '../support/random.ts'
import { addApp, addCaller, addConnection, keySql } from '../support/rows.ts'
import { type ServiceResponse, startService } from '../support/service.ts'
import { literalsOf, statementOf, valuesFor } from '../support/statements.ts'
import { isCitus } from '../support/template.ts'
import { until } from '../support/until.ts'
import type { Bearer } from './isolation/credentials.ts'
import { checkLog, checkMetrics } from './isolation/log-and-metrics.ts'
import {
  type AppPlan,
  connectionTokens,
  createSampleData,
  fullPlan,
  randomPlan,
  type SampleData,
} from './isolation/sample-data.ts'

const issuer = await startIssuer(t)
await issuer.addKey('first')
const service = await startService(t, {
  environment: { ...issuer.environment, METRICS_PORT: '0', TRUSTED_PROXIES: '127.0.0.1' },
})
const { db, get, log } = service
/** The only response for each reason: not found, expired or revoked. */
const errorResponses = new Map<string, string>()

/** Whole response, without its date and request id. */
function contentOf({ status, headers, text }: ServiceResponse): string {
  const lines = [...headers].filter(([name]) => name !== 'x-request-id' && name !== 'date')
  const id = String(headers.get('x-request-id'))
  const content = JSON.stringify([status, lines, text.replace(id, '<id>')])
  // The link to the documentation is relative to the path of the list.
  return content.replace(/(?:\.\.\/)+(?=docs#)/, '')
}

/** Requests every list with every credential, and compares the responses with the model. */
async function requestEverything(plan: AppPlan[]): Promise<number> {
  const data = await createSampleData({ db, issuer }, plan, lists)
  const from = log.length
  const callers = new Map<string, string>()
  // Last ETag of each path: callers of another app send it, too.
  const tags = new Map<string, { etag: string; appId: string }>()
  for (const bearer of data.bearers) {
    for (const token of [...connectionTokens, 'unknown']) {
      for (const route of lists) {
        const address = addressOf(route, data.tokenOf(token))
        const tag = tags.get(address)
        const headers: Record<string, string> = tag ? { 'if-none-match': tag.etag } : {}
        // Repeated rejections of one address would wait.
        headers['x-forwarded-for'] = `10.0.${callers.size >> 8}.${callers.size & 255}`
        const response = await get(address, { token: bearer.token, headers })
        if (response.status === 304 && tag?.appId !== bearer.appId) {
          throw new Error(`${bearer.appId} got 304 for the ETag of ${tag?.appId}`)
        }
        const etag = response.headers.get('etag')
        if (etag) tags.set(address, { etag, appId: bearer.appId })
        compare(data, bearer, token, route, response)
        const caller = bearer.state === 'valid' ? bearer.appId : ''
        callers.set(String(response.headers.get('x-request-id')), caller)
      }
    }
  }
  await checkLog(service, from, data, callers)
  await checkMetrics(service, data)
  return callers.size
}

t.test('200: rows of the caller only; any other request gets the same error', async (t) => {
  let requests = 0
  const check = async (plan: AppPlan[]) => {
    requests += await requestEverything(plan)
  }
  await fc.assert(fc.asyncProperty(randomPlan, check), {
    numRuns: runs(12),
    examples: [[fullPlan]],
    endOnFailure: true,
  })
  t.comment(`${requests} requests`)
  t.same([...errorResponses.keys()].sort(), ['expired', 'not found', 'revoked'])
})

t.test('metrics: requests of other apps add no series', async (t) => {
  // Metrics of Node and the process are not about requests.
  const series = async () =>
    [...(await scrape(service)).keys()].filter((name) => !/^(nodejs|process)_/.test(name))
  await requestEverything(fullPlan)
  const before = await series()
  await requestEverything(fullPlan)
  t.same(await series(), before)
  t.ok(before.some((name) => name.includes('"/api/v1/queries/connections/:token/')))
})

function compare(
  data: SampleData,
  bearer: Bearer,
  token: string,
  { list }: ListRoute,
  response: ServiceResponse,
) {
  const rows = bearer.state === 'valid' ? data.rowsOf(bearer.appId, token) : undefined
  const content = contentOf(response)
  for (const appId of data.appIds.filter((id) => id !== bearer.appId)) {
    const secrets = [appId, ...data.secretsOf(appId)]
    const leak = secrets.find((secret) => content.includes(secret))
    if (leak) throw new Error(`${bearer.appId} received ${leak} of ${appId}`)
  }
  if (rows === undefined) {
    const type = bearer.state === 'valid' ? 'not found' : bearer.state
    const known = errorResponses.get(type) ?? content
    errorResponses.set(type, known)
    if (content !== known) throw new Error(`${type}: ${content}\ninstead of ${known}`)
    return
  }
  if (response.status === 304) return
  const body = response.json()
  const items: Record<string, string>[] = Array.isArray(body) ? body : body.items
  const ids = items.map((item) => item[list.id]).sort()
  const expected = [...(rows.get(list.name) ?? [])].sort()
  if (JSON.stringify(ids) !== JSON.stringify(expected))
    throw new Error(`${token}: ${ids} instead of ${expected}`)
}

/** Returns the paths of the document that a check of these lists does not request. */
async function uncheckedPaths(checked: readonly ListRoute[]): Promise<string[]> {
  const { paths } = (await get('/openapi.json')).json() as { paths: object }
  const requested = checked.map(({ url }) => `/api/v1/queries${url.replace(':token', '{token}')}`)
  return Object.keys(paths).filter((path) => !requested.includes(path))
}

t.test('lists that are checked: all paths of the API', async (t) => {
  t.same(await uncheckedPaths(lists), [])
  for (const left of lists) {
    const others = lists.filter((route) => route !== left)
    t.equal((await uncheckedPaths(others)).length, 1, `without ${left.list.name}`)
  }
})

t.test("404: If-None-Match with the ETag of another app's connection", async (t) => {
  const [a, b] = [await addCaller(db), await addCaller(db)]
  const { orders } = a.connection
  const etag = String((await get(orders, { token: a.token })).headers.get('etag'))
  const headers = { 'if-none-match': etag }
  t.equal((await get(orders, { token: a.token, headers })).status, 304)
  t.equal((await get(orders, { token: b.token, headers })).status, 404)
  t.equal((await get(b.connection.orders, { token: b.token, headers })).status, 200)
})

t.test(
  'log and metrics: the same for a connection of another app and an unknown one',
  async (t) => {
    const { token, connection } = await addCaller(db)
    const foreign = await addConnection(db, await addApp(db))
    // The first request of a token has one lookup more.
    await get(connection.portfolio, { token })
    const lines = async (address: string) => {
      const before = log.length
      await get(address, { token })
      const requestLine = () => log.slice(before).find((line) => line.includes('"msg":"request"'))
      await until('the request has a log line', () => requestLine() !== undefined)
      const times = ['time', 'requestId', 'durationMs', 'waitMs', 'databaseMs', 'writeMs']
      const line = Object.entries(JSON.parse(String(requestLine())))
      return Object.fromEntries(line.filter(([name]) => !times.includes(name)))
    }
    const counters = async () =>
      [...(await scrape(service))].filter(([name]) =>
        /^(http_requests|database_read).*_(total|count)/.test(name),
      )
    const difference = async (address: string) => {
      const before = new Map(await counters())
      const line = await lines(address)
      const after = await counters()
      return {
        line,
        changed: after
          .filter(([name, count]) => count !== (before.get(name) ?? 0))
          .map(([name, count]) => [name, count - (before.get(name) ?? 0)]),
      }
    }
    const unknown = foreign.portfolio.replace(foreign.token, 'unknown001')
    const foreignChanges = await difference(foreign.portfolio)
    t.ok(foreignChanges.changed.length > 0)
    t.same(foreignChanges, await difference(unknown))
  },
)

t.test(
  'PostgreSQL: a connection of another app costs as many blocks as an unknown one',
  async (t) => {
    const { token: caller, connections, client } = await addManyConnections(t)
    const statement = statementOf('portfolio_transaction first page by tokenHash')
    await client.query(`prepare page as ${statement.text}`)
    const cost = async (connection: string): Promise<number | string> => {
      const values = { ...valuesFor({ token: caller }, connection), from: '2020-01-01', limit: 9 }
      const execute = `execute page (${literalsOf(statement, values)})`
      const explain = (options: string) =>
        client.query(`explain (analyze, timing off, ${options}) ${execute}`)
      if (isCitus) {
        // It does not show the blocks of a shard, only which nodes of the plan ran, and their rows.
        const { rows } = await explain('costs off, summary off')
        const lines = rows.map((row) => row['QUERY PLAN'])
        return lines.join('\n').replaceAll(/(?<=_)\d+\b|(?<=port=)\d+/g, 'N')
      }
      const plan = (await explain('buffers, format json')).rows[0]['QUERY PLAN'][0].Plan
      return plan['Shared Hit Blocks'] + plan['Shared Read Blocks']
    }
    await cost('warm up')
    const costs = new Set<number | string>()
    for (const token of connections)
      costs.add(await cost(token)).add(await cost(`${token} unknown`))
    t.equal(costs.size, 1, `costs: ${[...costs].join('\n')}`)
  },
)

/** Adds a caller, and 2,000 connections of another app, so that the index has some depth. */
async function addManyConnections(t: Test) {
  const { token } = await addCaller(db)
  const other = await addApp(db)
  await sql`insert into connection (id, app_id, token_hash)
    select ${sql.raw(keySql('hash'))}, ${other}, hash
    from generate_series(1, 2000) n, sha256(('crowd ' || n)::bytea) hash`.execute(db)
  await sql`vacuum analyze connection`.execute(db)
  const login = await loginOfService(t, db, service.databaseUrl)
  const options = Object.entries(plannerSettings(!isCitus)).map(
    ([name, value]) => `-c ${name}=${value}`,
  )
  const client = await openClient(t, login, options.join(' '))
  const connections = Array.from({ length: 30 }, (_, n) => `crowd ${1 + n * 60}`)
  return { token, connections, client }
}
