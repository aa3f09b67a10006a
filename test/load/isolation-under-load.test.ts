import { randomUUID } from 'node:crypto'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import t from 'tap'
import { startIssuer } from '../support/issuer.ts'
import { metricsUrl } from '../support/metrics.ts'
import { randomOf } from '../support/random.ts'
import {
  addAccountTransactions,
  addApp,
  addConnection,
  addPortfolioTransactions,
  addresses,
  addToken,
  addTransferOrders,
} from '../support/rows.ts'
import { type ServiceResponse, startService } from '../support/service.ts'
import { until } from '../support/until.ts'

/*
 * Reads of several apps share database connections. In this test, reads end early in every way at once.
 * Clients disconnect, memory is full, locks time out, and PostgreSQL connections are killed. Every
 * response must still have the caller's own rows.
 */

const LOAD_MS = 3_000
const CLIENTS = 48
const APPS = 3
/** Number of rows and length of texts of each app's connections. */
const SHAPES = [
  [0, 0],
  [1, 9],
  [7, 100],
  [60, 300],
  [400, 800],
] as const

interface ExpectedResponse {
  path: string
  token: string
  headers?: Record<string, string>
  method?: string
  /** Status of the response without load. */
  status: number
  text: string
}

const issuer = await startIssuer(t)
await issuer.addKey('first')
const service = await startService(t, {
  environment: {
    ...issuer.environment,
    ...{ ANSWER_MEMORY_MB: '16', STATEMENT_TIMEOUT_MS: '500', DATABASE_POOL_SIZE: '6' },
    METRICS_PORT: '0',
  },
})
const { db, get, port, log } = service
const PAST = '2020-01-01T00:00:00Z'

t.test('200 or 503: rows of the caller only, while other reads fail', async (t) => {
  const apps: AppOfTest[] = []
  const all: ExpectedResponse[] = []
  for (let number = 0; number < APPS; number += 1) apps.push(await makeApp(number))
  for (const app of apps) all.push(...(await requestsOf(app)))
  const large = await addLarge(apps[0] as AppOfTest)
  all.push(large)
  const counts = { correct: 0, overloaded: 0, disconnected: 0, killed: 0 }
  const wrong: string[] = []
  const deadline = performance.now() + LOAD_MS
  const running = () => performance.now() < deadline
  const client = async (number: number) => {
    const { chance, next, oneOf } = randomOf(`client ${number}`)
    const pause = () => (chance(0.5) ? next() * 10 : 200)
    while (running()) {
      const request = oneOf(all)
      const result = chance(0.2) ? 'disconnected' : await check(request)
      if (result === 'disconnected') await disconnect(chance(0.5) ? request : large, pause())
      if (result in counts) counts[result as keyof typeof counts] += 1
      else wrong.push(`${request.method ?? 'GET'} ${request.path}: ${result}`)
    }
  }
  const kill = async () => {
    while (running()) counts.killed += await killSome()
  }
  const lock = async () => {
    while (running()) await lockOrders()
  }
  await Promise.all([
    kill(),
    lock(),
    ...Array.from({ length: CLIENTS }, (_, number) => client(number)),
  ])
  t.comment(counts)
  t.same(wrong.slice(0, 3), [], 'each response is correct to the byte, or a 503')
  for (const [what, count] of Object.entries(counts)) t.ok(count > 0, what)
  await until('no response is in memory', () => service.limits.memory.used === 0)
  // Reads of disconnected clients may end last.
  await until('no connection is in use', () => service.database.state().primary.inUse === 0)

  t.match(log.join(''), /could not be served/, 'the log has errors')
  const metrics = await (await fetch(metricsUrl(service))).text()
  for (const { appId, tokens, invalidTokens, names } of apps) {
    const secrets = [...tokens, ...invalidTokens, ...names]
    t.same(
      secrets.filter((secret) => log.some((line) => line.includes(secret))),
      [],
      'the log',
    )
    const leaked = [appId, ...secrets].filter((secret) => metrics.includes(secret))
    t.same(leaked, [], 'the metrics')
  }
})

/** @returns number of killed connections of the service */
async function killSome(): Promise<number> {
  await sleep(60)
  const { rows } = await sql`select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and usename ^@ 'service_' and random() < 0.3`.execute(db)
  return rows.length
}

/** Locks a table for longer than the service waits for a lock. */
async function lockOrders(): Promise<void> {
  await sleep(500)
  await db.transaction().execute(async (writer) => {
    await sql`lock table assets_transfer_order`.execute(writer)
    await sleep(150)
  })
}

/** Sends a request, and compares the response with the expected one. */
async function check(request: ExpectedResponse): Promise<string> {
  const response = await get(request.path, request)
  const text = textOf(response)
  if (response.status === 503) return 'overloaded'
  if (response.status !== request.status) return `${response.status} ${text.slice(0, 300)}`
  return text === request.text ? 'correct' : `${text.length} wrong bytes`
}

/** Sends a request, reads nothing, and disconnects before or during the response. */
async function disconnect({ path, token }: ExpectedResponse, ms: number): Promise<void> {
  const socket = connect({ port, host: '127.0.0.1' }).pause()
  socket.on('error', () => {})
  socket.write(`GET ${path} HTTP/1.0\r\nAuthorization: Bearer ${token}\r\n\r\n`)
  await sleep(ms)
  socket.destroy()
}

const textOf = ({ headers, text }: ServiceResponse) =>
  text.replace(String(headers.get('x-request-id')), '<id>')

interface AppOfTest {
  /** App id, which every row contains. */
  appId: string
  /** A token of the service, and one of the identity provider. */
  tokens: string[]
  invalidTokens: string[]
  /** Name, client id and connection tokens. */
  names: string[]
  foreign: string
  number: number
}

const shapeToken = (shape: number, app: number) => `shape ${shape} of ${app}`

/** Adds an app. All apps have connections of the same shapes, with different rows. */
async function makeApp(number: number): Promise<AppOfTest> {
  const [name, clientId] = [`app ${randomUUID()}`, `client ${randomUUID()}`]
  const appId = await addApp(db, { name, client_id: clientId })
  for (const [shape, [rows, length]] of SHAPES.entries()) {
    const connection = await addConnection(db, appId, shapeToken(shape, number))
    const texts = Array.from({ length: rows + (rows > 0 ? number : 0) }, (_, row) => ({
      description: `${appId} ${row} `.padEnd(length + row, 'x'),
    }))
    if (texts.length === 0) continue
    await addPortfolioTransactions(db, connection, ...texts)
    await addAccountTransactions(db, connection, ...texts)
    await addTransferOrders(db, connection, ...texts.map((_, row) => ({ name: `${appId} ${row}` })))
  }
  await addConnection(db, appId, `only ${number}`)
  return {
    appId: appId,
    tokens: [await addToken(db, appId), await issuer.sign({ client_id: clientId })],
    invalidTokens: [
      await addToken(db, appId, { expires_at: PAST }),
      await addToken(db, appId, { revoked_at: PAST }),
      `app_${'x'.repeat(43)}`,
      await issuer.sign({ client_id: clientId, exp: Date.parse(PAST) / 1000 }),
      await issuer.sign({ client_id: name }),
    ],
    names: [name, clientId, 'shape', `only ${number}`, `only%20${number}`],
    foreign: `only ${(number + 1) % APPS}`,
    number,
  }
}

/** Adds a large page: the response has many chunks, and few of them fit in memory. */
async function addLarge({ appId, tokens: [token = ''] }: AppOfTest): Promise<ExpectedResponse> {
  const connection = await addConnection(db, appId)
  const texts = Array.from({ length: 300 }, (_, row) => ({ description: `${row}`.padEnd(9_000) }))
  await addPortfolioTransactions(db, connection, ...texts)
  const { status, text } = await get(connection.portfolio, { token })
  return { path: connection.portfolio, token, status, text }
}

/** Responses without load. @throws Error if one contains another app's row */
async function requestsOf(app: AppOfTest): Promise<ExpectedResponse[]> {
  const { appId, tokens, invalidTokens, foreign, number } = app
  const requests: ExpectedResponse[] = []
  const note = async (request: Omit<ExpectedResponse, 'status' | 'text'>) => {
    const response = await get(request.path, request)
    requests.push({ ...request, status: response.status, text: textOf(response) })
    return response
  }
  const noteShape = async (connection: string, token: string) => {
    const { portfolio, account, orders } = addresses(connection)
    const pages = ['', '?limit=5&page=1', '?limit=2000&from=2024-01-01', '?from=2025-02-01']
    for (const path of [...pages.flatMap((page) => [portfolio + page, account + page]), orders]) {
      const { status, headers, text } = await note({ path, token })
      if (status !== 200) throw new Error(`${path}: ${status} ${text}`)
      const foreignRow = [...text.matchAll(/"(?:description|name)":"(\S+) /g)].find(
        ([, name]) => name !== appId,
      )
      if (foreignRow) throw new Error(`${path} of ${appId}: ${foreignRow}`)
      await note({ path, token, method: 'HEAD' })
      await note({ path, token, headers: { 'if-none-match': String(headers.get('etag')) } })
    }
  }
  for (const token of tokens) {
    for (const shape of SHAPES.keys()) await noteShape(shapeToken(shape, number), token)
    for (const path of Object.values(addresses(foreign))) await note({ path, token })
  }
  const { portfolio, orders } = addresses(shapeToken(2, number))
  for (const invalidToken of invalidTokens) {
    for (const path of [portfolio, orders, `${portfolio}?limit=0`])
      await note({ path, token: invalidToken })
  }
  return requests
}
