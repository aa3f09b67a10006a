import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { appToken, connectionToken, keyOf } from '../data/data-set.ts'
import { type ServerProcess, startProcess } from './server-process.ts'

/** A page of the portfolio transactions of a connection. */
export interface PageQuery {
  connection: number
  limit: number
  page: number
  from?: string
}

/** Paths and response format of a server. */
interface Api {
  name: string
  /** Path and query string of a page. */
  page(query: PageQuery): string
  orders(connection: number): string
  headers(connection: number): Record<string, string>
  /** Ids on a page, and the total. */
  readPage(response: Response): Promise<{ ids: string[]; total: number }>
  /** True if its bodies must be those of the service, byte by byte. */
  hasSameBytes?: true
}

/** A running server that can be measured. */
export interface Target extends Api, ServerProcess {}

const PREFIX = '/api/v1/queries/connections'

const service: Api = {
  name: 'this service',
  page: (query) =>
    `${PREFIX}/${connectionToken(query.connection)}/portfolios/transactions?${search(query)}`,
  orders: (connection) => `${PREFIX}/${connectionToken(connection)}/assets-transfer`,
  headers: (connection) => ({ authorization: `Bearer ${appToken(connection)}` }),
  readPage: readEnvelope,
}

// These servers know neither apps nor tokens: the path has the connection's key.
const express: Api = {
  name: 'Express + pg',
  page: (query) =>
    `/connections/${keyOf(query.connection)}/portfolios/transactions?${search(query)}`,
  orders: (connection) => `/connections/${keyOf(connection)}/assets-transfer`,
  headers: () => ({}),
  readPage: readEnvelope,
}

const nest: Api = { ...express, name: 'NestJS + TypeORM' }

// Its parameters cannot put nulls last, so rows of one day have another order.
const platformatic: Api = {
  name: 'Platformatic DB',
  page: ({ connection, limit, page, from }) =>
    [
      `/portfolioTransaction/?where.connectionId.eq=${keyOf(connection)}&totalCount=true`,
      `limit=${limit}&offset=${limit * page}${from ? `&where.effectiveDay.gte=${from}` : ''}`,
      'orderby.effectiveDay=desc&orderby.operationDateHour=desc&orderby.transactionId=desc',
    ].join('&'),
  orders: (connection) =>
    [
      `/assetsTransferOrder/?where.connectionId.eq=${keyOf(connection)}&where.completedAt.neq=null`,
      'orderby.completedAt=desc&orderby.id=desc',
    ].join('&'),
  headers: () => ({}),
  readPage: async (response) => {
    const items = (await response.json()) as { transactionId: string }[]
    const total = Number(response.headers.get('x-total-count'))
    return { ids: items.map((item) => item.transactionId), total }
  },
}

const postgresJs: Api = { ...service, name: 'node:http + postgres.js', hasSameBytes: true }

const floorFastify: Api = { ...service, name: 'floor: Fastify', hasSameBytes: true }
const floorHttp: Api = { ...service, name: 'floor: node:http', hasSameBytes: true }

export const SERVICE = service.name
export const FLOOR = floorFastify.name
export const EXPRESS = express.name
export const NEST = nest.name
export const PLATFORMATIC = platformatic.name

interface Compared {
  api: Api
  /** Within bench/. */
  script: string
  /** Role with which it reads. That of the service sees no row without a credential. */
  login: 'owner' | 'service'
}

export const COMPARED: Compared[] = [
  { api: floorFastify, script: 'compared-servers/floor-fastify.ts', login: 'service' },
  { api: floorHttp, script: 'compared-servers/floor-node-http.ts', login: 'service' },
  { api: postgresJs, script: 'compared-servers/postgres-js.ts', login: 'service' },
  { api: express, script: 'compared-servers/express.ts', login: 'owner' },
  { api: nest, script: 'node_modules/.nestjs/main.js', login: 'owner' },
  { api: platformatic, script: 'compared-servers/platformatic.ts', login: 'owner' },
]

const bench = dirname(import.meta.dirname)

/**
 * Starts the service as it ships, with its access log.
 * @param settings of the service that differ from their defaults
 */
export async function startService(
  url: string,
  settings: Record<string, string> = {},
  directory = join(bench, '..'),
): Promise<Target> {
  const env = { DATABASE_URL: url, ...settings }
  const { script, options } = await startOf(directory)
  return {
    ...service,
    ...(await startProcess(join(directory, script), env, '/health/ready', options)),
  }
}

/** Starts another server with the options of Node.js of the service. @param script within bench/ */
export async function startComparedServer(script: string, url = ''): Promise<ServerProcess> {
  const { options } = await startOf(join(bench, '..'))
  return startProcess(join(bench, script), { DATABASE_URL: url }, '/', options)
}

/** Returns the script of a checkout, and the options of Node.js with which it ships. */
async function startOf(directory: string): Promise<{ script: string; options: string[] }> {
  const { scripts } = JSON.parse(await readFile(join(directory, 'package.json'), 'utf8'))
  const [, ...options] = String(scripts.start).split(' ')
  return { script: String(options.pop()), options }
}

export const addressOf = ({ port }: ServerProcess, path: string) =>
  `http://127.0.0.1:${port}${path}`

const search = ({ limit, page, from }: PageQuery) =>
  new URLSearchParams({ limit: `${limit}`, page: `${page}`, ...(from ? { from } : {}) })

interface Envelope {
  items: { transactionId: string }[]
  totalItems: number
}

async function readEnvelope(response: Response) {
  const { items, totalItems } = (await response.json()) as Envelope
  return { ids: items.map((item) => item.transactionId), total: totalItems }
}
