import type { Server } from 'node:http'
import { Writable } from 'node:stream'
import type { Kysely } from 'kysely'
import type { Test } from 'tap'
import { buildApp } from '../../src/app.ts'
import { type Config, readConfig } from '../../src/config.ts'
import { Limits } from '../../src/limits/limits.ts'
import { Database } from '../../src/postgres/database.ts'
import type { Tables } from '../../src/postgres/tables.ts'
import { databaseOptions } from '../../src/service.ts'
import { createDatabase } from './database.ts'
import { type ResponseHeaders, sendRequest } from './http-client.ts'
import { loginOfService, openAsOwner } from './logins.ts'
import { until } from './until.ts'

export interface ServiceOptions {
  /** Connection string of the owner; without it, the test gets a new database. */
  databaseUrl?: string
  /** Settings by the names of src/config.ts that differ from the defaults. */
  environment?: Record<string, string>
  /** Log level; 'trace' by default. */
  logLevel?: string
}

export interface ServiceResponse {
  status: number
  headers: ResponseHeaders
  /** The unparsed body, in which numbers have all their digits. */
  text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests read any field.
  json(): any
}

export interface RequestOptions {
  /** The app's token; without it, the request has no Authorization header. */
  token?: string
  headers?: Record<string, string>
  method?: string
}

export interface Service {
  /** http://127.0.0.1:port */
  url: string
  port: number
  get(path: string, options?: RequestOptions): Promise<ServiceResponse>
  /** All tables, as their owner. */
  db: Kysely<Tables>
  /** Connection string of the owner. */
  databaseUrl: string
  /** Every line logged so far, as text. */
  log: string[]
  config: Config
  /** The service's own access to the database. */
  database: Database
  limits: Limits
  /** Tests shorten its timeouts. */
  server: Server
  close(): Promise<void>
}

/**
 * Starts the service on a port, with its own database, and closes it at teardown. Its role has only the
 * rights of investment_service, so row-level security applies in every test.
 */
export async function startService(t: Test, options: ServiceOptions = {}): Promise<Service> {
  const databaseUrl = options.databaseUrl ?? (await createDatabase(t)).url
  const db = openAsOwner(t, databaseUrl)
  const config = readConfig({
    DATABASE_URL: await loginOfService(t, db, databaseUrl),
    ...options.environment,
  })
  const log: string[] = []
  const stream = new Writable({
    decodeStrings: false,
    write: (line, _encoding, done) => {
      log.push(String(line))
      done()
    },
  })
  const isOwn = options.environment?.DATABASE_URL === undefined
  const database = new Database({
    ...databaseOptions(config, String(config.DATABASE_URL)),
    // A busy machine may need more time than the service gives it.
    ...(isOwn && { connectMs: 60_000 }),
  })
  const logger = { level: options.logLevel ?? 'trace', stream }
  const limits = new Limits(config.MAX_REQUESTS, config.ANSWER_MEMORY_MB * 2 ** 20)
  const app = await buildApp({
    config,
    db: database,
    limits,
    droppedLogLines: () => 0,
    secrets: { newest: () => config, failed: () => false },
    logger,
  })
  let closed: Promise<void> | undefined
  const close = () => {
    closed ??= app.close().then(() => database.close())
    return closed
  }
  t.teardown(close)
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  if (isOwn) await openFirstConnection(database)
  const get = (path: string, options?: RequestOptions) => send(url, path, options)
  const port = Number(new URL(url).port)
  return {
    url,
    port,
    get,
    db,
    databaseUrl,
    log,
    config,
    database,
    limits,
    server: app.server,
    close,
  }
}

/**
 * Opens the first connection to the database. On a busy machine, this may take longer than the service waits for it, and
 * the first requests would get 503.
 */
async function openFirstConnection(database: Database): Promise<void> {
  const statement = { name: '', title: 'first', text: 'select' }
  await until('a connection to the database', async () => {
    const rows = await database.probe(statement, []).catch(() => undefined)
    return rows !== undefined
  })
}

/** Sends a request to the service at this address. */
async function send(
  url: string,
  path: string,
  options: RequestOptions = {},
): Promise<ServiceResponse> {
  const { token, headers, method = 'GET' } = options
  const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const response = await sendRequest(url + path, {
    method,
    headers: { ...authorization, ...headers },
  })
  return { ...response, json: () => JSON.parse(response.text) }
}
