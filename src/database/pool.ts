import pg from 'pg'
import { PLANNER_SETTINGS } from './planner.ts'
import { tapRows } from './row-tap.ts'
import { createServerSockets } from './server-sockets.ts'

export interface PoolOptions {
  /** postgres://user:password@host:port/database */
  url: string
  /** Server connections for requests at most; one more is for the service's own questions. */
  size: number
  /** How long a request may wait for a free connection, in ms. */
  waitMs: number
  /** How long the server may work on one statement, in ms. */
  statementTimeoutMs: number
  /**
   * Whether a pooler that shares server connections between transactions (PgBouncer) stands between.
   * It refuses startup options, so that the role's own settings must do (`operator migrate` makes them).
   */
  pooler: boolean
}

/** A pool of sessions that can only read, and that keep the plan of a prepared statement. */
export function createPool(options: PoolOptions): SessionPool {
  const settings = {
    default_transaction_read_only: 'on',
    statement_timeout: options.statementTimeoutMs,
    // Not as long as it may work: whoever waits for a lock holds a connection that others could use.
    lock_timeout: Math.ceil(options.statementTimeoutMs / 5),
    ...PLANNER_SETTINGS,
  }
  const startup = Object.entries(settings).map(([name, value]) => `-c ${name}=${value}`)
  const pool = new SessionPool({
    connectionString: options.url,
    max: options.size + 1,
    connectionTimeoutMillis: Math.min(options.waitMs, CONNECT_MS),
    idleTimeoutMillis: IDLE_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    application_name: 'investment-data-query-service',
    ...(options.pooler ? {} : { options: startup.join(' ') }),
    stream: createServerSockets(),
    Client: TappedClient,
  })
  // A connection that breaks is told to whoever uses it; the pool itself only has to drop it.
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  return pool
}

/** A pool that knows whether its server still says anything. */
export class SessionPool extends pg.Pool {
  /** When something came from the server over any connection, on performance.now()'s clock. */
  heardAt = performance.now()
  readonly #inUse = new Set<pg.PoolClient>()

  constructor(config: pg.PoolConfig) {
    super(config)
    const heard = () => {
      this.heardAt = performance.now()
    }
    this.on('connect', ({ connection }) => connection.stream.on('data', heard))
    this.on('acquire', (client) => this.#inUse.add(client))
    this.on('release', (_error, client) => this.#inUse.delete(client))
  }

  /** Connections that are not idle. */
  get inUse(): number {
    return this.#inUse.size
  }

  /** Takes no more, and breaks off what still waits for answers. */
  abandon(): void {
    this.end().catch(() => {})
    for (const { connection } of this.#inUse) {
      connection.stream.destroy(new Error('the connection was given up, as its server is silent'))
    }
  }
}

/**
 * How long a connection may be idle, in ms. One that is opened anew has to plan each statement again:
 * the first requests after a pause cost several times what the next ones do.
 */
const IDLE_MS = 600_000
/** How long a new connection may take to open, in ms: some ten, but more where all is busy. */
const CONNECT_MS = 2_000

class TappedClient extends pg.Client {
  constructor(config?: string | pg.ClientConfig) {
    super(config)
    tapRows(this)
  }
}
