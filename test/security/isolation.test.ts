import fc from 'fast-check'
import { sql } from 'kysely'
import pg from 'pg'
import t, { type Test } from 'tap'
import { PLANNER_SETTINGS, statements } from '../../src/postgres/statements.ts'
import { connectionKey, tokenHash } from '../../src/postgres/tokens.ts'
import { startIssuer } from '../support/issuer.ts'
import { loginOfService } from '../support/logins.ts'
import { scrape } from '../support/metrics.ts'
import { addApp, addCaller, addConnection, keySql } from '../support/rows.ts'
import { type ServiceResponse, startService } from '../support/service.ts'
import { until } from '../support/until.ts'
import type { Bearer } from './isolation/credentials.ts'
import { checkLog, checkMetrics } from './isolation/operators-view.ts'
import {
  type AppPlan,
  connectionTokens,
  createWorld,
  type Endpoint,
  endpoints,
  fullPlan,
  type World,
  worldPlan,
} from './isolation/world.ts'

const issuer = await startIssuer(t)
await issuer.addKey('first')
const service = await startService(t, { environment: { ...issuer.environment, METRICS_PORT: '0' } })
const { db, get, log } = service
/** What all that is not there, not valid or too late is answered with. */
const refusals = new Map<string, string>()

/** All that an answer says but when and by which name. */
function said({ status, headers, text }: ServiceResponse): string {
  const lines = [...headers].filter(([name]) => name !== 'x-request-id' && name !== 'date')
  return JSON.stringify([status, lines, text.replace(String(headers.get('x-request-id')), '<id>')])
}

/** Asks for everything with everybody's credentials, and holds what is said against the model. */
async function askEverything(plan: AppPlan[]): Promise<number> {
  const world = await createWorld({ db, issuer }, plan)
  const from = log.length
  const callers = new Map<string, string>()
  // Whoever asked last: another app with the same connection token sends its tag, too.
  const tags = new Map<string, { etag: string; appId: string }>()
  for (const bearer of world.bearers) {
    for (const token of [...connectionTokens, 'nobody has this']) {
      for (const endpoint of endpoints) {
        const address = world.addresses(token)[endpoint]
        const tag = tags.get(address)
        const headers: Record<string, string> = tag ? { 'if-none-match': tag.etag } : {}
        const answer = await get(address, { token: bearer.token, headers })
        if (answer.status === 304 && tag?.appId !== bearer.appId) {
          throw new Error(`${bearer.appId} was told that the tag of ${tag?.appId} is good`)
        }
        const etag = answer.headers.get('etag')
        if (etag) tags.set(address, { etag, appId: bearer.appId })
        compare(world, bearer, token, endpoint, answer)
        const caller = bearer.standing === 'valid' ? bearer.appId : ''
        callers.set(String(answer.headers.get('x-request-id')), caller)
      }
    }
  }
  await checkLog(service, from, world, callers)
  await checkMetrics(service, world)
  return callers.size
}

t.test('Whoever asks for whatever gets what is theirs, and one answer for all else', async (t) => {
  let asked = 0
  const check = async (plan: AppPlan[]) => {
    asked += await askEverything(plan)
  }
  await fc.assert(fc.asyncProperty(worldPlan, check), { numRuns: 12, endOnFailure: true })
  t.comment(`${asked} requests`)
  t.same([...refusals.keys()].sort(), ['expired', 'not there', 'revoked'])
})

t.test('The metrics have nothing more to say after other apps have called', async (t) => {
  // What Node and the process do is not about requests.
  const series = async () =>
    [...(await scrape(service)).keys()].filter((name) => !/^(nodejs|process)_/.test(name))
  await askEverything(fullPlan)
  const before = await series()
  await askEverything(fullPlan)
  t.same(await series(), before)
  t.ok(before.some((name) => name.includes('"/api/v1/queries/connections/:token/')))
})

function compare(
  world: World,
  bearer: Bearer,
  token: string,
  endpoint: Endpoint,
  answer: ServiceResponse,
) {
  const rows = bearer.standing === 'valid' ? world.rowsOf(bearer.appId, token) : undefined
  for (const appId of world.appIds.filter((id) => id !== bearer.appId)) {
    const secrets = [appId, ...world.secretsOf(appId)]
    const leak = secrets.find((secret) => said(answer).includes(secret))
    if (leak) throw new Error(`${bearer.appId} was told ${leak} of ${appId}`)
  }
  if (rows === undefined) {
    const kind = bearer.standing === 'valid' ? 'not there' : bearer.standing
    const known = refusals.get(kind) ?? said(answer)
    refusals.set(kind, known)
    if (said(answer) !== known) throw new Error(`${kind}: ${said(answer)}\ninstead of ${known}`)
    return
  }
  if (answer.status === 304) return
  const body = answer.json()
  const items = endpoint === 'orders' ? body : body.items
  const ids = items.map((item: Record<string, string>) => item[IDS[endpoint]]).sort()
  if (JSON.stringify(ids) !== JSON.stringify([...rows[endpoint]].sort())) {
    throw new Error(`${token}: ${ids} instead of ${rows[endpoint]}`)
  }
}

const IDS = { portfolio: 'transactionId', account: 'movementId', orders: 'id' }

t.test("404: the ETag of another app's connection is no way to it", async (t) => {
  const [a, b] = [await addCaller(db), await addCaller(db)]
  const { orders } = a.connection
  const etag = String((await get(orders, { token: a.token })).headers.get('etag'))
  const headers = { 'if-none-match': etag }
  t.equal((await get(orders, { token: a.token, headers })).status, 304)
  t.equal((await get(orders, { token: b.token, headers })).status, 404)
  t.equal((await get(b.connection.orders, { token: b.token, headers })).status, 200)
})

t.test(
  'The log and the metrics do not tell what is not yours from what is not there',
  async (t) => {
    const { token } = await addCaller(db)
    const foreign = await addConnection(db, await addApp(db))
    const lines = async (address: string) => {
      const before = log.length
      await get(address, { token })
      const wanted = () => log.slice(before).find((line) => line.includes('"msg":"request"'))
      await until('the request has its line', () => wanted() !== undefined)
      const { time, requestId, durationMs, ...rest } = JSON.parse(String(wanted()))
      return rest
    }
    const counted = async () =>
      [...(await scrape(service))].filter(([name]) =>
        /^(http_requests|database_read).*_(total|count)/.test(name),
      )
    const difference = async (address: string) => {
      const before = new Map(await counted())
      const line = await lines(address)
      const after = await counted()
      return {
        line,
        moved: after
          .filter(([name, count]) => count !== (before.get(name) ?? 0))
          .map(([name, count]) => [name, count - (before.get(name) ?? 0)]),
      }
    }
    const absent = foreign.portfolio.replace(foreign.token, 'nobodyhas1')
    const [theirs, nobodys] = [await difference(foreign.portfolio), await difference(absent)]
    t.ok(theirs.moved.length > 0)
    t.same(theirs, nobodys)
  },
)

t.test('What is not yours costs the database what it costs not to be there', async (t) => {
  const { hash, connections, client } = await crowd(t)
  const title = 'portfolio_transaction first page of days by tokenHash'
  await client.query(`prepare asked as ${statements.get(title)?.text}`)
  const blocks = async (connection: string) => {
    const asked = tokenHash(connection)
    const lookup = [bytes(asked), connectionKey(asked)]
    const values = [bytes(hash), ...lookup, `'2020-01-01'`, `'infinity'`, 9]
    const explained = `explain (analyze, buffers, timing off, format json) execute asked (${values})`
    const plan = (await client.query(explained)).rows[0]['QUERY PLAN'][0].Plan
    return plan['Shared Hit Blocks'] + plan['Shared Read Blocks']
  }
  await blocks('warm up')
  const costs = new Set<number>()
  for (const token of connections) {
    costs.add(await blocks(token)).add(await blocks(`${token} or not`))
  }
  t.equal(costs.size, 1, `blocks read: ${[...costs]}`)
})

const bytes = (hash: Buffer) => `'\\x${hash.toString('hex')}'`

/** A caller among two thousand connections of others: an index of some depth. */
async function crowd(t: Test) {
  const { token } = await addCaller(db)
  const other = await addApp(db)
  await sql`insert into connection (id, app_id, token_hash)
    select ${sql.raw(keySql('hash'))}, ${other}, hash
    from generate_series(1, 2000) n, sha256(('crowd ' || n)::bytea) hash`.execute(db)
  await sql`vacuum analyze connection`.execute(db)
  const login = await loginOfService(t, db, service.databaseUrl)
  const options = Object.entries(PLANNER_SETTINGS).map(([name, value]) => `-c ${name}=${value}`)
  const client = new pg.Client({ connectionString: login, options: options.join(' ') })
  await client.connect()
  t.teardown(() => client.end())
  const connections = Array.from({ length: 30 }, (_, n) => `crowd ${1 + n * 60}`)
  return { hash: tokenHash(token), connections, client }
}
