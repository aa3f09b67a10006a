import { readConfig } from '../../src/config.ts'
import { callerOfToken } from '../../src/http/authentication.ts'
import { arrayBody, pageBody } from '../../src/http/list-body.ts'
import type { Body } from '../../src/json/response-body.ts'
import { rowWriters } from '../../src/json/row-writer.ts'
import { Limits } from '../../src/limits/limits.ts'
import { MemoryAccount } from '../../src/limits/memory-account.ts'
import { Tenant } from '../../src/limits/tenants.ts'
import { Database } from '../../src/postgres/database.ts'
import { Reader } from '../../src/postgres/reader.ts'
import { tokenHash } from '../../src/postgres/tokens.ts'
import { pagedList } from '../../src/queries/pages.ts'
import { type Found, type ListRequest, readLookup } from '../../src/queries/read.ts'
import { completedOrders } from '../../src/queries/transfer-orders.ts'
import { FactRecorder } from '../../src/request-facts.ts'
import { PortfolioTransactions } from '../../src/schemas/portfolio-transaction.ts'
import { ProblemCodes, ProblemError } from '../../src/schemas/problem.ts'
import { TransferOrders } from '../../src/schemas/transfer-order.ts'
import { databaseOptions } from '../../src/service.ts'

/** A request without checks: what is left of it for the queries. */
export interface FloorRequest {
  list: 'portfolios/transactions' | 'assets-transfer'
  connection: string
  authorization: string | undefined
  ifNoneMatch: string | undefined
  query: URLSearchParams
}

export interface FloorResponse {
  status: number
  headers: Record<string, string>
  body: Buffer
  /** Must be called when the response is sent: others then reuse its memory. */
  end(): void
}

const config = readConfig(process.env)
const db = new Database(databaseOptions(config, config.DATABASE_URL ?? ''))
const limits = new Limits(config.MAX_REQUESTS, Number.MAX_SAFE_INTEGER)
/** Apps by their credentials. A caller that no app is known of has few reads at a time. */
const apps = new Map<string, Tenant>()
const lists = {
  'portfolios/transactions': {
    list: PortfolioTransactions,
    queries: pagedList(PortfolioTransactions),
    writer: rowWriters(PortfolioTransactions).json,
    write: pageBody,
  },
  'assets-transfer': {
    list: TransferOrders,
    queries: completedOrders(TransferOrders),
    writer: rowWriters(TransferOrders).json,
    write: arrayBody,
  },
}

/**
 * Responds with the service's own client of PostgreSQL, its statements and its writer of rows, and with none of its layers: no log,
 * no limits, no quota, no metrics and no check of a parameter. What the service costs above this, its layers cost.
 */
export async function respond(asked: FloorRequest): Promise<FloorResponse> {
  const { list, queries, writer, write } = lists[asked.list]
  const tenant = appOf(asked.authorization ?? '')
  const memory = new MemoryAccount(limits.memory, { tenant })
  const request = listRequest(asked, tenant, memory)
  const empty = { body: Buffer.alloc(0), end: () => memory.close(true) }
  try {
    let known: Found | undefined
    if (asked.ifNoneMatch !== undefined) {
      known = await readLookup(db, list.table, request)
      if (tagOf(known.lookup.version) === asked.ifNoneMatch)
        return { ...empty, status: 304, headers: { etag: asked.ifNoneMatch } }
    }
    const found = await queries.read(db, request, known)
    const writing = { memory, scheduler: limits.writeScheduler, tenant }
    const body = await wholeBody(await write(found, request, writer, writing))
    const headers = {
      'content-type': 'application/json; charset=utf-8',
      'cache-control': 'private, no-cache',
      etag: tagOf(found.lookup.version),
    }
    return { status: 200, headers, body, end: () => memory.close(true) }
  } catch (error) {
    memory.close(false)
    if (!(error instanceof ProblemError)) throw error
    return { ...empty, status: ProblemCodes[error.code].status, headers: {} }
  }
}

function appOf(authorization: string): Tenant {
  const app = apps.get(authorization) ?? new Tenant(authorization)
  apps.set(authorization, app)
  return app
}

function listRequest(asked: FloorRequest, tenant: Tenant, memory: MemoryAccount): ListRequest {
  const { query } = asked
  const request: ListRequest = {
    reader: new Reader({
      owner: { tenant },
      memory,
      sizes: limits.pageSizes,
      recorder: new FactRecorder(),
      onReadEnd: () => {},
    }),
    knowApp: () => {},
    caller: callerOfToken((asked.authorization ?? '').slice('Bearer '.length)),
    connectionHash: tokenHash(asked.connection),
    purpose: 'page',
    isHead: false,
    limit: Number(query.get('limit') ?? 1000),
    page: Number(query.get('page') ?? 0),
  }
  const [from, to] = [query.get('from'), query.get('to')]
  if (from !== null) request.from = from
  if (to !== null) request.to = to
  return request
}

const tagOf = (version: string) => `W/"${version}"`

async function wholeBody(body: Body): Promise<Buffer> {
  if (Buffer.isBuffer(body)) return body
  const chunks: Buffer[] = []
  for await (const chunk of body(() => false)) chunks.push(chunk)
  return Buffer.concat(chunks)
}

const PATH =
  /^\/api\/v1\/queries\/connections\/(\w[\w-]*)\/(portfolios\/transactions|assets-transfer)(?:\?(.*))?$/

/** Reads the URL of a request; undefined if it is that of no list. */
export function readUrl(
  url: string,
): Pick<FloorRequest, 'list' | 'connection' | 'query'> | undefined {
  const [, connection, list, query] = PATH.exec(url) ?? []
  if (connection === undefined) return undefined
  return { connection, list: list as FloorRequest['list'], query: new URLSearchParams(query) }
}
