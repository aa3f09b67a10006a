import { Writable } from 'node:stream'
import type { Kysely } from 'kysely'
import type { Test } from 'tap'
import { buildApp, databaseOptions } from '../../src/app.ts'
import { type Config, readConfig } from '../../src/config.ts'
import { type Database, openDatabase } from '../../src/postgres/database.ts'
import type { Tables } from '../../src/postgres/tables.ts'
import { createDatabase } from './database.ts'
import { loginOfService, openAsOwner } from './logins.ts'

export interface ServiceOptions {
  /** The database, where it is not to be a fresh one of this test. */
  databaseUrl?: string
  /** Settings by the names of src/config.ts that differ from the defaults. */
  environment?: Record<string, string>
  /** What is logged; everything, unless it says otherwise. */
  logLevel?: string
}

export interface ServiceResponse {
  status: number
  headers: Headers
  /** The body as it came; numbers are compared in here, where they still have all their digits. */
  text: string
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into whatever came.
  json(): any
}

export interface RequestOptions {
  /** The app's token; without it, no Authorization header is sent. */
  token?: string
  headers?: Record<string, string>
  method?: string
}

export interface Service {
  /** http://127.0.0.1:port */
  url: string
  port: number
  get(path: string, asking?: RequestOptions): Promise<ServiceResponse>
  /** The writing side: all tables, as their owner. */
  db: Kysely<Tables>
  /** Connection string of the owner. */
  databaseUrl: string
  /** Every line logged so far, as text. */
  log: string[]
  config: Config
  /** The reading side, as the service has it. */
  database: Database
  close(): Promise<void>
}

/**
 * The service as it runs: on a port, over a PostgreSQL database of its own, as a role that has no other
 * rights than investment_service, so that row-level security holds in every test. Closed at teardown.
 */
export async function startService(t: Test, options: ServiceOptions = {}): Promise<Service> {
  const databaseUrl = options.databaseUrl ?? (await createDatabase(t)).url
  const db = openAsOwner(t, databaseUrl)
  const config = readConfig({
    DATABASE_URL: await loginOfService(t, db, databaseUrl),
    // The client is in the same process, so that its work looks like the service being late.
    MAX_EVENT_LOOP_DELAY_MS: '0',
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
  const database = openDatabase(databaseOptions(config, String(config.DATABASE_URL)))
  const logger = { level: options.logLevel ?? 'trace', stream }
  const app = await buildApp({ config, db: database, logger })
  let closed: Promise<void> | undefined
  const close = () => {
    closed ??= app.close().then(() => database.close())
    return closed
  }
  t.teardown(close)
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  const get = (path: string, asking?: RequestOptions) => ask(url, path, asking)
  const port = Number(new URL(url).port)
  return { url, port, get, db, databaseUrl, log, config, database, close }
}

async function ask(
  url: string,
  path: string,
  asking: RequestOptions = {},
): Promise<ServiceResponse> {
  const { token, headers = {}, method = 'GET' } = asking
  const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const response = await fetch(url + path, { method, headers: { ...authorization, ...headers } })
  const text = await response.text()
  return {
    status: response.status,
    headers: response.headers,
    text,
    json: () => JSON.parse(text),
  }
}
