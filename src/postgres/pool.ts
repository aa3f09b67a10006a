import pg from 'pg'
import { ServerIsStandby } from './errors.ts'
import { allowsStandby, serverName } from './server-urls.ts'
import { plannerSettings } from './statements.ts'
import { destroyConnection, isOnStandby, onReceived, wireOptions } from './wire/client.ts'

export interface PoolOptions {
  /** postgres://user:password@host:port/database, with several hosts as in libpq */
  url: string
  /** True if the server may be a standby. By default, the URL decides (target_session_attrs). */
  standby?: boolean
  /** Maximum connections for requests. Health checks and metrics use one more. */
  size: number
  /** Maximum wait of a request for a connection, in ms. */
  waitMs: number
  /** Maximum execution time of a statement, in ms. */
  statementTimeoutMs: number
  /**
   * True behind PgBouncer in transaction mode. PgBouncer rejects startup options, so the settings of
   * the role apply (`operator migrate` sets them).
   */
  pooler: boolean
  /** False on Citus: statements are planned for each connection. True by default. */
  genericPlans?: boolean
}

/**
 * Idle time after which a connection is closed, in ms. A new connection has to plan each statement, so
 * the first requests after a pause cost several times as much.
 */
const IDLE_MS = 600_000
/** Maximum time to open a connection, in ms. About ten are usual, more on a busy machine. */
const CONNECT_MS = 2_000

/**
 * Creates a pool of read-only connections that keep the plan of a prepared statement.
 * @param options the URL must have one host
 * @param onEnd called after a connection has ended
 */
export function createPool(
  options: PoolOptions,
  onEnd: (client: pg.PoolClient) => void = () => {},
): ServerPool {
  const settings = {
    default_transaction_read_only: 'on',
    statement_timeout: options.statementTimeoutMs,
    // Shorter than statement_timeout, because a query that waits for a lock occupies a connection.
    lock_timeout: Math.ceil(options.statementTimeoutMs / 5),
    ...plannerSettings(options.genericPlans !== false),
  }
  const startup = Object.entries(settings).map(([name, value]) => `-c ${name}=${value}`)
  // PgBouncer reports the state of the first server that it connected to, even after a failover.
  const standby = options.standby ?? (options.pooler || allowsStandby(options.url))
  const config = {
    connectionString: options.url,
    // If this throws, connect() fails.
    onConnect: (client: pg.ClientBase) => {
      if (standby || !isOnStandby(client)) return
      throw new ServerIsStandby(`${serverName(options.url)} is a standby`)
    },
    max: options.size + 1,
    connectionTimeoutMillis: Math.min(options.waitMs, CONNECT_MS),
    idleTimeoutMillis: IDLE_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    application_name: 'investment-data-query-service',
    ...(options.pooler ? {} : { options: startup.join(' ') }),
    ...wireOptions(),
  }
  return new ServerPool(config, onEnd)
}

/**
 * Finds a server that accepts connections. It tries all at once, because one of them may be silent.
 * @returns its URL
 * @throws AggregateError with the errors of all servers
 */
export function findServer(options: PoolOptions, urls: string[]): Promise<string> {
  const test = async (url: string) => {
    const pool = createPool({ ...options, url })
    const client = await pool.connect()
    client.release()
    await pool.end()
    return url
  }
  return Promise.any(urls.map(test))
}

/** Pool that records the time at which its server last sent anything. */
export class ServerPool extends pg.Pool {
  /** On performance.now()'s clock. */
  receivedAt = performance.now()
  readonly #inUse = new Set<pg.PoolClient>()

  constructor(config: pg.PoolConfig, onEnd: (client: pg.PoolClient) => void) {
    super(config)
    const received = () => {
      this.receivedAt = performance.now()
    }
    // The query in flight reports the broken connection. Without a listener, the process would end.
    this.on('error', () => {})
    this.on('connect', (client) => {
      client.on('error', () => {})
      client.on('end', () => onEnd(client))
      onReceived(client, received)
    })
    this.on('acquire', (client) => this.#inUse.add(client))
    this.on('release', (_error, client) => this.#inUse.delete(client))
  }

  /** Ends the pool and closes the connections in use. */
  abandon(): void {
    this.end().catch(() => {})
    for (const client of this.#inUse) {
      destroyConnection(client, new Error('the connection was closed: its server is silent'))
    }
  }
}
