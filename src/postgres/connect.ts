import type pg from 'pg'
import { ServerIsStandby } from './errors.ts'
import { allowsStandby, serverName } from './server-urls.ts'
import { plannerSettings } from './statements.ts'
import { WireClient } from './wire/client.ts'
import { createSockets } from './wire/sockets.ts'

export interface ConnectOptions {
  url: string
  /** True if the server may be a standby. By default, the URL decides (target_session_attrs). */
  standby?: boolean
  waitMs: number
  statementTimeoutMs: number
  /**
   * True behind PgBouncer in transaction mode. PgBouncer rejects startup options, so the settings of
   * the role apply (`operator migrate` sets them).
   */
  pooler: boolean
  /** False on Citus: statements are planned for each connection. True by default. */
  genericPlans?: boolean
}

/** Maximum time to open a connection, in ms. About ten are usual, more on a busy machine. */
const CONNECT_MS = 2_000

/** Returns the settings of a read-only connection that keeps the plan of a prepared statement. */
export function clientConfig(options: ConnectOptions): pg.ClientConfig {
  const settings = {
    default_transaction_read_only: 'on',
    statement_timeout: options.statementTimeoutMs,
    // Shorter than statement_timeout, because a query that waits for a lock occupies a connection.
    lock_timeout: Math.ceil(options.statementTimeoutMs / 5),
    ...plannerSettings(options.genericPlans !== false),
  }
  const startup = Object.entries(settings).map(([name, value]) => `-c ${name}=${value}`)
  return {
    connectionString: options.url,
    connectionTimeoutMillis: Math.min(options.waitMs, CONNECT_MS),
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    application_name: 'investment-data-query-service',
    ...(options.pooler ? {} : { options: startup.join(' ') }),
  }
}

/** Opens a connection. @throws ServerIsStandby if the options do not allow a standby */
export async function connect(
  options: ConnectOptions,
  stream = createSockets(),
): Promise<WireClient> {
  const client = new WireClient({ ...clientConfig(options), stream })
  // The query in flight reports the broken connection. Without a listener, the process would end.
  client.on('error', () => {})
  // PgBouncer reports the state of the first server that it connected to, even after a failover.
  const mayBeStandby = options.standby ?? (options.pooler || allowsStandby(options.url))
  try {
    await client.connect()
    if (mayBeStandby || !client.standby) return client
    throw new ServerIsStandby(`${serverName(options.url)} is a standby`)
  } catch (error) {
    client.destroy()
    throw error
  }
}

/**
 * Finds a server that accepts connections. It tries all at once, because one of them may be silent.
 * @returns its URL
 * @throws AggregateError with the errors of all servers
 */
export function findServer(options: Omit<ConnectOptions, 'url'>, urls: string[]): Promise<string> {
  const test = async (url: string) => {
    const client = await connect({ ...options, url })
    client.end()
    return url
  }
  return Promise.any(urls.map(test))
}
