import { execFile } from 'node:child_process'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { appToken, connectionToken, keyOf } from './data-set.ts'
import type { BenchDatabase } from './database.ts'
import { type ServerProcess, startProcess } from './server-process.ts'

/** A page of the portfolio transactions of a connection. */
export interface Ask {
  connection: number
  limit: number
  page: number
  from?: string
}

/** What is measured: how it is asked, and what it says. */
export interface Target {
  name: string
  server: ServerProcess
  page(ask: Ask): string
  orders(connection: number): string
  headers(connection: number): Record<string, string>
  /** The ids on a page, and the total. */
  readPage(response: Response): Promise<{ ids: string[]; total: number }>
}

export const SERVICE = 'this service'
export const EXPRESS = 'Express + pg'
export const NEST = 'NestJS + TypeORM'
export const PLATFORMATIC = 'Platformatic DB'

type Form = Omit<Target, 'server'>

/** The service as it ships, its access log included, and each peer, all on the same database. */
export async function startTargets(
  database: BenchDatabase,
  started: ServerProcess[],
): Promise<Target[]> {
  await compileNest()
  const start = async (form: Form, server: Promise<ServerProcess>) => {
    started.push(await server)
    return { ...form, server: await server }
  }
  const peer = (form: Form, script: string) => start(form, startPeer(script, database.ownerUrl))
  return [
    await start(service, startService(database.serviceUrl)),
    await peer(express, 'peers/express.ts'),
    await peer(nest, 'node_modules/.nestjs/main.js'),
    await peer(platformatic, 'peers/platformatic.ts'),
  ]
}

export const serviceTarget = (server: ServerProcess): Target => ({ ...service, server })

/** @param settings of the service that differ from their defaults */
export function startService(
  url: string,
  settings: Record<string, string> = {},
): Promise<ServerProcess> {
  const script = join(import.meta.dirname, '../src/server.ts')
  return startProcess(script, { DATABASE_URL: url, ...settings }, '/health/ready')
}

export function startPeer(script: string, url = ''): Promise<ServerProcess> {
  return startProcess(join(import.meta.dirname, script), { DATABASE_URL: url })
}

/** NestJS needs decorators, and so a compiler before it runs. */
async function compileNest(): Promise<void> {
  const compiler = join(dirname(import.meta.dirname), 'node_modules/.bin/tsc')
  await promisify(execFile)(compiler, ['-p', join(import.meta.dirname, 'peers/nestjs')])
}

const query = ({ limit, page, from }: Ask) =>
  new URLSearchParams({ limit: `${limit}`, page: `${page}`, ...(from ? { from } : {}) })

interface Envelope {
  items: { transactionId: string }[]
  totalItems: number
}

async function readEnvelope(response: Response) {
  const { items, totalItems } = (await response.json()) as Envelope
  return { ids: items.map((item) => item.transactionId), total: totalItems }
}

const PREFIX = '/api/v1/queries/connections'
const service: Form = {
  name: SERVICE,
  page: (ask) =>
    `${PREFIX}/${connectionToken(ask.connection)}/portfolios/transactions?${query(ask)}`,
  orders: (connection) => `${PREFIX}/${connectionToken(connection)}/assets-transfer`,
  headers: (connection) => ({ authorization: `Bearer ${appToken(connection)}` }),
  readPage: readEnvelope,
}

// The peers know neither apps nor tokens: they are given the connection's id.
const express: Form = {
  name: EXPRESS,
  page: (ask) => `/connections/${keyOf(ask.connection)}/portfolios/transactions?${query(ask)}`,
  orders: (connection) => `/connections/${keyOf(connection)}/assets-transfer`,
  headers: () => ({}),
  readPage: readEnvelope,
}

const nest: Form = { ...express, name: NEST }

// Where nulls stand in the order cannot be said, so that rows of one day come in another order.
const platformatic: Form = {
  name: PLATFORMATIC,
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
