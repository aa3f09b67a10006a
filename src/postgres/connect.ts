import type pg from 'pg'
import { withDeadline } from '../limits/deadline.ts'
import { isDenied, ServerFailed, ServerIsStandby } from './failures.ts'
import { allowsStandby, serverName } from './server-urls.ts'
import { plannerSettings } from './statements.ts'
import { createSocket, WireClient } from './wire/client.ts'

export interface ConnectOptions {
  url: string
  /** True if the server may be a standby. By default, the URL decides (target_session_attrs). */
  standby?: boolean
  waitMs: number
  statementTimeoutMs: number
  /** True behind PgBouncer in transaction mode. It rejects startup options: the role has the settings (`migrate`). */
  pooler: boolean
  /** Returns the URL with the newest user and password. */
  newestUrl?: (url: string) => string
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
    ...plannerSettings(true),
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

/** Opens a connection, with the newest user and password. @throws ServerIsStandby unless allowed */
export async function connect(options: ConnectOptions): Promise<WireClient> {
  const url = options.newestUrl?.(options.url) ?? options.url
  const client = new WireClient({ ...clientConfig({ ...options, url }), stream: createSocket })
  // The query in flight reports the broken connection. Without a listener, the process would end.
  client.on('error', () => {})
  // PgBouncer reports the state of the first server that it connected to, even after a failover.
  const mayBeStandby = options.standby ?? (options.pooler || allowsStandby(url))
  try {
    await client.connect()
    if (mayBeStandby || !client.standby) return client
    throw new ServerIsStandby(`${serverName(url)} is a standby`)
  } catch (error) {
    client.destroy()
    throw error
  }
}

/** A server that accepts connections, with the history of its data. */
export interface FoundServer {
  url: string
  /** Identity of the database cluster; its standbys have the same one. Empty if the role may not read it. */
  cluster: string
  /** Each promotion begins a new timeline. 0: unknown, or a standby. */
  timeline: number
  /** Identity of the running server. Several addresses can lead to it. */
  started: string
}

/** True if one server was promoted while the other one was a primary: the other one lacks its changes. */
export const supersedes = (one: FoundServer, other: FoundServer) =>
  one.cluster === other.cluster && other.timeline > 0 && one.timeline > other.timeline

/**
 * Remembers the newest primary that a program has used. After a failover, the old primary may come back while the new
 * one restarts. Reads from it would be old, and writes to it would be lost.
 */
export class NewestPrimary {
  /** The newest one; undefined before the first. */
  server: FoundServer | undefined

  /** Remembers a server that will be used. @throws ServerFailed if a newer one has superseded it */
  use(server: FoundServer): void {
    if (this.server && supersedes(this.server, server))
      throw new ServerFailed(
        `${serverName(server.url)} is a superseded primary: it lacks changes of ${serverName(this.server.url)}`,
      )
    this.server = server
  }
}

// pg_control_checkpoint() has the timeline of the last checkpoint, which a new primary has not yet begun.
const HISTORY = `
  select system_identifier::text as cluster, pg_postmaster_start_time()::text as started,
    case when pg_is_in_recovery() then 0
      else ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer end as timeline
  from pg_control_system()`

/**
 * Finds the servers that accept connections. It tries all at once, because one of them may be silent.
 * @param compareMs time after the first response in which the others may respond
 * @returns newest timeline first
 * @throws AggregateError with the errors of all servers
 */
export async function findServers(
  options: Omit<ConnectOptions, 'url'>,
  urls: string[],
  compareMs: number,
): Promise<FoundServer[]> {
  const found: FoundServer[] = []
  const tests = urls.map(async (url) => {
    const client = await connect({ ...options, url })
    const rows = await historyOf(client).finally(() => client.destroy())
    found.push({ url, cluster: '', timeline: 0, started: url, ...rows[0] })
  })
  await Promise.any(tests)
  await withDeadline<unknown>(Promise.allSettled(tests), compareMs, () => {})
  return found.toSorted((one, other) => other.timeline - one.timeline)
}

/** Reads the history of a server. @returns no row if the role may not read it */
export async function historyOf(client: pg.ClientBase): Promise<Partial<FoundServer>[]> {
  try {
    const query: pg.QueryConfig = { text: HISTORY, ...{ query_timeout: CONNECT_MS } }
    return (await client.query(query)).rows
  } catch (error) {
    if (isDenied(error)) return []
    throw error
  }
}
