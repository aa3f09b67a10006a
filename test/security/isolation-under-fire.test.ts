import { randomUUID } from 'node:crypto'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import t from 'tap'
import { startIssuer } from '../support/issuer.ts'
import { metricsUrl } from '../support/metrics.ts'
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
 * Reads of several apps share connections and round trips (src/database/batches.ts). Here everything
 * that can end a read does so at the same time: clients that go away, memory that is full, locks that
 * are not had, server connections that are killed. Whoever is answered must get what is theirs.
 */

const FIRE_MS = 3_000
const CLIENTS = 48
const APPS = 3
/** Rows of the connections of each app, and how long their texts are. */
const SHAPES = [
  [0, 0],
  [1, 9],
  [7, 100],
  [60, 300],
  [400, 800],
] as const

interface Question {
  path: string
  token: string
  headers?: Record<string, string>
  method?: string
  /** What it is answered with while all is quiet. */
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

t.test('Whatever ends the reads beside it, an answer has the rows of its own', async (t) => {
  const apps: AppOfTest[] = []
  const all: Question[] = []
  for (let number = 0; number < APPS; number += 1) apps.push(await makeApp(number))
  for (const app of apps) all.push(...(await questionsOf(app)))
  const large = await addLarge(apps[0] as AppOfTest)
  all.push(large)
  const counts = { right: 0, refused: 0, left: 0, killed: 0 }
  const wrong: string[] = []
  const deadline = performance.now() + FIRE_MS
  const burning = () => performance.now() < deadline
  const client = async () => {
    while (burning()) {
      const question = any(all)
      const end = Math.random() < 0.2 ? 'left' : await held(question)
      if (end === 'left') await leave(Math.random() < 0.5 ? question : large)
      if (end === 'left' || end === 'right' || end === 'refused') counts[end] += 1
      else wrong.push(`${question.method ?? 'GET'} ${question.path}: ${end}`)
    }
  }
  const kill = async () => {
    while (burning()) counts.killed += await killSome()
  }
  const lock = async () => {
    while (burning()) await lockOrders()
  }
  await Promise.all([kill(), lock(), ...Array.from({ length: CLIENTS }, client)])
  t.comment(counts)
  t.same(wrong.slice(0, 3), [], 'each one is the truth to the byte, or a 503')
  for (const [what, count] of Object.entries(counts)) t.ok(count > 0, what)
  await until('no answer is held any more', () => service.database.state().answerBytes === 0)
  // Of those who left, the last reads may have to end.
  await until('no connection is in use', () => service.database.state().primary.inUse === 0)

  t.match(log.join(''), /could not be served/, 'there are faults in the log')
  const metrics = await (await fetch(metricsUrl(service))).text()
  for (const { mark, tokens, refused, names } of apps) {
    const secrets = [...tokens, ...refused, ...names]
    t.same(
      secrets.filter((secret) => log.some((line) => line.includes(secret))),
      [],
      'the log',
    )
    const told = [mark, ...secrets].filter((secret) => metrics.includes(secret))
    t.same(told, [], 'the metrics')
  }
})

/** @returns how many of the service's connections were killed */
async function killSome(): Promise<number> {
  await sleep(60)
  const { rows } = await sql`select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and usename ^@ 'service_' and random() < 0.3`.execute(db)
  return rows.length
}

/** Longer than the service waits for a lock. */
async function lockOrders(): Promise<void> {
  await sleep(500)
  await db.transaction().execute(async (writer) => {
    await sql`lock table assets_transfer_order`.execute(writer)
    await sleep(150)
  })
}

/** Asks, and holds what comes against what has to come. */
async function held(question: Question): Promise<string> {
  const answer = await get(question.path, question)
  const text = said(answer)
  if (answer.status === 503) return 'refused'
  if (answer.status !== question.status) return `${answer.status} ${text.slice(0, 300)}`
  return text === question.text ? 'right' : `${text.length} bytes that are not the truth`
}

/** Asks, takes nothing of the answer, and goes away: before it came, or while it is being sent. */
async function leave({ path, token }: Question): Promise<void> {
  const socket = connect({ port, host: '127.0.0.1' }).pause()
  socket.on('error', () => {})
  socket.write(`GET ${path} HTTP/1.0\r\nAuthorization: Bearer ${token}\r\n\r\n`)
  await sleep(Math.random() < 0.5 ? Math.random() * 10 : 200)
  socket.destroy()
}

const said = ({ headers, text }: ServiceResponse) =>
  text.replace(String(headers.get('x-request-id')), '<id>')

const any = <T>(list: T[]) => list[Math.floor(Math.random() * list.length)] as T

interface AppOfTest {
  /** Its id, which all its rows name. */
  mark: string
  /** One of the service's own, and one of the identity provider. */
  tokens: string[]
  refused: string[]
  /** Its own name, its client id, and the tokens of its connections. */
  names: string[]
  foreign: string
  number: number
}

const shapeToken = (shape: number, app: number) => `shape ${shape} of ${app}`

/** All apps have connections of the same shapes; none has any row of another. */
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
    mark: appId,
    tokens: [await addToken(db, appId), await issuer.sign({ client_id: clientId })],
    refused: [
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

/** A page that comes in many pieces, and of which few fit in the memory. */
async function addLarge({ mark, tokens: [token = ''] }: AppOfTest): Promise<Question> {
  const connection = await addConnection(db, mark)
  const texts = Array.from({ length: 300 }, (_, row) => ({ description: `${row}`.padEnd(9_000) }))
  await addPortfolioTransactions(db, connection, ...texts)
  const { status, text } = await get(connection.portfolio, { token })
  return { path: connection.portfolio, token, status, text }
}

/** What the service says while all is quiet, after a look whether that names no app but the caller's. */
async function questionsOf(app: AppOfTest): Promise<Question[]> {
  const { mark, tokens, refused, foreign, number } = app
  const questions: Question[] = []
  const note = async (asked: Omit<Question, 'status' | 'text'>) => {
    const answer = await get(asked.path, asked)
    questions.push({ ...asked, status: answer.status, text: said(answer) })
    return answer
  }
  const noteShape = async (connection: string, token: string) => {
    const { portfolio, account, orders } = addresses(connection)
    const pages = ['', '?limit=5&page=1', '?limit=2000&from=2024-01-01', '?from=2025-02-01']
    for (const path of [...pages.flatMap((page) => [portfolio + page, account + page]), orders]) {
      const { status, headers, text } = await note({ path, token })
      if (status !== 200) throw new Error(`${path}: ${status} ${text}`)
      const strange = [...text.matchAll(/"(?:description|name)":"(\S+) /g)].find(
        ([, name]) => name !== mark,
      )
      if (strange) throw new Error(`${path} of ${mark}: ${strange}`)
      await note({ path, token, method: 'HEAD' })
      await note({ path, token, headers: { 'if-none-match': String(headers.get('etag')) } })
    }
  }
  for (const token of tokens) {
    for (const shape of SHAPES.keys()) await noteShape(shapeToken(shape, number), token)
    for (const path of Object.values(addresses(foreign))) await note({ path, token })
  }
  const { portfolio, orders } = addresses(shapeToken(2, number))
  for (const stranger of refused) {
    for (const path of [portfolio, orders, `${portfolio}?limit=0`])
      await note({ path, token: stranger })
  }
  return questions
}
