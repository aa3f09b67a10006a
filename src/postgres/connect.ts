import type { Duplex } from 'node:stream'
import type pg from 'pg'
import { errorMessage } from '../error-message.ts'
import { ServerIsStandby } from './failures.ts'
import { allowsStandby, serverName } from './server-urls.ts'
import { plannerSettings, requiredSettings, startupOptions } from './statements.ts'
import { WireClient } from './wire/client.ts'

export interface ConnectOptions {
  url: string
  /** True if the server may be a standby. By default, the URL decides (target_session_attrs). */
  standby?: boolean
  /** Maximum time of a statement, and of the wait for a connection, in ms. */
  statementTimeoutMs: number
  /** Maximum time to open a connection; CONNECT_MS or statementTimeoutMs by default. Tests on a busy machine need more. */
  connectMs?: number
  /** True behind PgBouncer in transaction mode. It rejects startup options: the role has the settings (`migrate`). */
  pooler: boolean
  /** Returns the URL with the newest user and password. */
  newestUrl?: (url: string) => string
  /** Creates the socket of a connection; a socket of TCP by default. */
  createSocket?: () => Duplex
}

/** Maximum time to open a connection, in ms. About ten are usual, more on a busy machine. */
export const CONNECT_MS = 2_000

/**
 * Lifts limits of time that a role or a database may have. They end the connection with all reads on it, instead of one
 * statement as statement_timeout does. No startup options, because PostgreSQL 16 and earlier have no transaction_timeout.
 */
const WITHOUT_OTHER_TIMEOUTS = `
  select set_config(name, '0', false) from unnest(array['transaction_timeout', 'idle_session_timeout']) name
  where current_setting(name, true) is not null`

/** Returns the settings of a read-only connection that keeps the plan of a prepared statement. */
export function clientConfig(options: ConnectOptions): pg.ClientConfig {
  const { statementTimeoutMs, connectMs = Math.min(CONNECT_MS, statementTimeoutMs) } = options
  const { createSocket } = options
  const settings = {
    ...requiredSettings,
    default_transaction_read_only: 'on',
    statement_timeout: statementTimeoutMs,
    // Shorter than statement_timeout, because a query that waits for a lock occupies a connection.
    lock_timeout: Math.ceil(statementTimeoutMs / 5),
    ...plannerSettings(true),
  }
  return {
    connectionString: options.url,
    connectionTimeoutMillis: connectMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    application_name: 'investment-data-query-service',
    ...(options.pooler ? {} : { options: startupOptions(settings) }),
    ...(createSocket && { stream: createSocket }),
  }
}

/** pg has this option, and its types do not. */
interface Untyped {
  query_timeout: number
}

/**
 * Runs a query of the start of a connection. Without a limit, a server that has become silent would keep the connection
 * opening for ever, and the pool would open no other one.
 */
export function ask(client: pg.ClientBase, text: string): Promise<pg.QueryResult> {
  const query: pg.QueryConfig & Untyped = { text, query_timeout: CONNECT_MS }
  return client.query(query)
}

/** Opens a connection, with the newest user and password. @throws ServerIsStandby unless allowed */
export async function connect(options: ConnectOptions): Promise<WireClient> {
  const url = options.newestUrl?.(options.url) ?? options.url
  const client = new WireClient(clientConfig({ ...options, url }))
  // The query in flight reports the broken connection. Without a listener, the process would end.
  client.on('error', () => {})
  // PgBouncer reports the state of the first server that it connected to, even after a failover.
  const mayBeStandby = options.standby ?? (options.pooler || allowsStandby(url))
  try {
    await client.connect()
    if (!options.pooler) await ask(client, WITHOUT_OTHER_TIMEOUTS)
    if (mayBeStandby || !client.standby) return client
    throw new ServerIsStandby(`${serverName(url)} is a standby`)
  } catch (error) {
    client.destroy()
    if (error instanceof Error) error.message = errorMessage(error, 'sslrootcert in the URL')
    throw error
  }
}
