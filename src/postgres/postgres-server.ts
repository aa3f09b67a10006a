import type { RequestContext } from '../context.ts'
import type { ConnectOptions } from './connect.ts'
import { ServerFailed } from './failures.ts'
import { Hosts } from './hosts.ts'
import { Pool } from './pool.ts'
import { serverUrls } from './server-urls.ts'
import type { Parameter, Statement } from './statements.ts'
import type { RawRows } from './wire/query.ts'

export interface ServerOptions extends ConnectOptions {
  /** Maximum number of connections. */
  size: number
  /** Called with `host:port` after a failover to another host of the URL. */
  onFailover?: ((server: string) => void) | undefined
}

/** Part of the connections for large reads. One of them at a time keeps a processor of PostgreSQL busy. */
const LARGE_SHARE = 0.1
/** Time after the statement timeout at which a server counts as down, in ms. */
const GRACE_MS = 1_000
/** Maximum duration of a probe, in ms: orchestrators usually wait one second for a health check. */
const PROBE_MS = 800

export type PostgresServer = ReturnType<typeof openServer>
export type ServerState = ReturnType<PostgresServer['state']>

/** Opens a server with two pools: large reads have few connections, so that small ones do not wait behind them. */
export function openServer(options: ServerOptions) {
  const { size, waitMs, pooler, statementTimeoutMs, onFailover } = options
  const hosts = new Hosts(options, (server) => {
    for (const pool of pools) pool.abandon()
    onFailover?.(server)
  })
  const isOneOfSeveral = serverUrls(options.url).length > 1
  const few = Math.ceil(size * LARGE_SHARE)
  const silentMs = statementTimeoutMs + GRACE_MS
  const usual = { waitMs, pooler, silentMs }
  const small = new Pool({ ...usual, size: Math.max(1, size - few), large: false }, () =>
    hosts.connect(),
  )
  const large = new Pool({ ...usual, size: few, large: true }, async () => {
    const client = await hosts.connect()
    // PostgreSQL then ends the statement of a closed connection. Some systems do not support it.
    if (!pooler) await client.query(`set client_connection_check_interval = '1s'`).catch(() => {})
    return client
  })
  const pools = [small, large]

  return {
    /** Runs a SELECT of a request. @throws Unavailable if no response arrives in time */
    read: (
      statement: Statement,
      values: Parameter[],
      context: RequestContext,
    ): Promise<RawRows> => {
      const pool = context.large && !statement.singleRow ? large : small
      return pool.read(statement, values, context)
    },
    /** Runs a statement of a health check or metric, ahead of all requests. @throws Unavailable */
    probe: async (statement: Statement, values: Parameter[]): Promise<RawRows> => {
      try {
        return await small.probe(statement, values, PROBE_MS)
      } catch (error) {
        // A server that hangs accepts no new connection either, and another host may be the primary.
        if (error instanceof ServerFailed && isOneOfSeveral)
          hosts.connect().then(
            (client) => client.end(),
            () => {},
          )
        throw error
      }
    },
    state: () => {
      /** Time since the last response, also an error, in ms. */
      const quietMs = performance.now() - Math.max(small.respondedAt, large.respondedAt)
      return {
        /** Number of open connections, and of those in use. */
        connections: small.sessions + large.sessions,
        inUse: small.inUse + large.inUse,
        /** Number of reads that wait for a connection. */
        waiting: small.waiting + large.waiting,
        quietMs,
        /** True if the server recently responded to a request. A health check may wait behind slow ones. */
        responding: quietMs < silentMs,
      }
    },
    /** Replaces all connections. @throws Error if no new one can be opened; the others then stay */
    renew: async () => {
      const client = await hosts.connect()
      client.end()
      for (const pool of pools) pool.renew()
    },
    close: async () => {
      for (const pool of pools) pool.close()
    },
  }
}
