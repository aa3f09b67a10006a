import { withDeadline } from '../limits/deadline.ts'
import { Unavailable } from '../limits/unavailable.ts'
import { ask, type ConnectOptions } from './connect.ts'
import { hasState, ServerFailed, SqlState } from './failures.ts'
import { Hosts } from './hosts.ts'
import { Pool } from './pool.ts'
import type { Reader } from './reader.ts'
import { allowsStandby, sameDatabase, serverName, serverUrls } from './server-urls.ts'
import type { Parameter, Statement } from './statements.ts'
import type { RawRows } from './wire/query.ts'

interface ServerOptions extends ConnectOptions {
  size: number
  /** Called with `host:port` after a failover to another host of the URL. */
  onFailover?: ((server: string) => void) | undefined
}

export interface DatabaseOptions extends Omit<ServerOptions, 'standby' | 'newestUrl'> {
  /** Replicas to read from: URLs separated by commas, each with one or more hosts. */
  replicaUrl?: string | undefined
  /** Returns both lists with the newest users and passwords. */
  newestUrls?: () => Pick<DatabaseOptions, 'url' | 'replicaUrl'>
  /** Called when a replica is no longer used, with the reason, or is used again. */
  onReplicaChange?: (name: string, unusableReason: string | undefined) => void
}

/** Databases of the service: a primary, and replicas if the settings name any. */
export type Database = ReturnType<typeof openDatabase>

/** Opens the databases. They connect when they are first read. */
export function openDatabase(options: DatabaseOptions) {
  const { newestUrls = () => options, onReplicaChange = () => {}, size } = options
  const primary = openServer({
    ...options,
    newestUrl: (url) => sameDatabase(newestUrls().url, url),
  })
  /** The next one in turn is first. */
  const replicas = serverUrls(options.replicaUrl ?? '').map((url) => {
    const newestUrl = (url: string) => sameDatabase(newestUrls().replicaUrl ?? '', url)
    return openReplica({ ...options, url, newestUrl, standby: true }, onReplicaChange)
  })
  const servers = [primary, ...replicas]
  /** Skips a replica with many more waiting reads than the primary: it is overloaded. */
  const nextReplica = (): Replica | undefined => {
    const most = primary.state().waiting + size
    const next = replicas.find((replica) => replica.state().waiting <= most && replica.isUsable())
    if (next) replicas.push(...replicas.splice(replicas.indexOf(next), 1))
    return next
  }
  return {
    ...primary,
    /** Returns usable replicas in turn. Undefined without DATABASE_REPLICA_URL. */
    replica: replicas.length > 0 ? nextReplica : undefined,
    state: () => ({
      primary: primary.state(),
      replicas: replicas.map((replica) => replica.state()),
    }),
    /** True if the primary may be a standby: DATABASE_URL allows it. */
    allowsStandby: allowsStandby(options.url),
    renew: async () => {
      await Promise.all(servers.map((server) => server.renew()))
    },
    close: () => {
      for (const server of servers) server.close()
    },
  }
}

/** Part of the connections for large reads. Each of them keeps a processor of PostgreSQL busy. */
const LARGE_SHARE = 0.1
/** Minimum of them: the large reads of one app leave one connection to those of the others. */
const LEAST_LARGE = 2
/** Returns how many connections to a server are for small and for large reads, of this many: at least three together. */
export function poolSizes(size: number): { small: number; large: number } {
  const large = Math.max(LEAST_LARGE, Math.ceil(size * LARGE_SHARE))
  return { small: Math.max(1, size - large), large }
}

/** Time after the statement timeout at which a server counts as down, in ms. */
const GRACE_MS = 1_000
/** Maximum duration of a probe, in ms: orchestrators usually wait one second for a health check. */
export const PROBE_MS = 800

/** Opens a server with two pools: large reads have few connections, so that small ones do not wait behind them. */
function openServer(options: ServerOptions) {
  const { size, pooler, statementTimeoutMs, onFailover } = options
  const hosts = new Hosts(options, (server) => {
    for (const pool of pools) pool.abandon()
    onFailover?.(server)
  })
  const sizes = poolSizes(size)
  const silentMs = statementTimeoutMs + GRACE_MS
  const usual = { waitMs: statementTimeoutMs, pooler, silentMs }
  const large = new Pool({ ...usual, size: sizes.large, isLarge: true }, async () => {
    const client = await hosts.connect()
    // PostgreSQL then ends the statement of a closed connection. Some systems do not support it.
    if (!pooler) await ask(client, `set client_connection_check_interval = '1s'`).catch(() => {})
    return client
  })
  const small = new Pool({ ...usual, size: sizes.small }, () => hosts.connect())
  const pools = [small, large]
  const poolOf = (statement: Statement, reader: Reader) =>
    reader.isLarge && !statement.singleRow ? large : small

  return {
    /** Runs a SELECT of a request. @throws Unavailable if no response arrives in time */
    read: (statement: Statement, values: Parameter[], reader: Reader): Promise<RawRows> =>
      poolOf(statement, reader).read(statement, values, reader),
    /** Runs a statement of a health check or metric, ahead of all requests. @throws Unavailable */
    probe: async (statement: Statement, values: Parameter[]): Promise<RawRows> => {
      try {
        return await small.probe(statement, values, PROBE_MS)
      } catch (error) {
        // A server that hangs accepts no new connection either, and another host may be the primary.
        if (error instanceof ServerFailed) hosts.follow().catch(() => {})
        throw error
      }
    },
    state: () => {
      /** Time since the last response, also an error, in ms. */
      const quietMs = performance.now() - Math.max(small.respondedAt, large.respondedAt)
      /** True if the server recently responded to a request. A health check may wait behind slow ones. */
      const responding = quietMs < silentMs
      const one = small.state()
      const other = large.state()
      return {
        connections: one.connections + other.connections,
        inUse: one.inUse + other.inUse,
        waiting: one.waiting + other.waiting,
        quietMs,
        responding,
      }
    },
    /** Replaces all connections. @throws Error if no new one can be opened; the others then stay */
    renew: async () => {
      const client = await hosts.connect()
      client.end()
      for (const pool of pools) pool.renew()
    },
    close: () => {
      for (const pool of pools) pool.close()
    },
  }
}

/** Time without any response of a replica after which a read uses the primary, in ms. */
const SILENT_MS = 1_000
/** Time for which a replica is not used after a failure, in ms. One read then tries it. */
const UNUSED_MS = 5_000
/** Old versions in a row after which a replica is not used. Just after a change, each replica has an old version. */
const OLD_READS = 10

export type Replica = ReturnType<typeof openReplica>

/** Opens a standby that serves reads while it responds and has the newest data. */
function openReplica(
  options: ServerOptions,
  onChange: (name: string, unusableReason: string | undefined) => void,
) {
  const server = openServer(options)
  const name = serverName(options.url)
  let unusableReason: string | undefined
  let usableAt = 0
  let oldReads = 0

  const set = (reason: string | undefined) => {
    usableAt = reason === undefined ? 0 : performance.now() + UNUSED_MS
    if (reason === unusableReason) return
    unusableReason = reason
    onChange(name, reason)
  }
  /** Waits for a read while the server responds. @throws ServerFailed after SILENT_MS without any response */
  const untilSilent = async (reading: Promise<RawRows>): Promise<RawRows> => {
    for (;;) {
      const rows = await withDeadline(reading, SILENT_MS, () => undefined)
      if (rows !== undefined) return rows
      if (server.state().quietMs >= SILENT_MS)
        throw new ServerFailed('the replica does not respond')
    }
  }
  return {
    ...server,
    name,
    state: () => ({ ...server.state(), name, unusableReason }),
    /** @returns undefined if the replica fails or has no room: the primary may succeed */
    read: async (...query: Parameters<typeof server.read>): Promise<RawRows | undefined> => {
      try {
        return await untilSilent(server.read(...query))
      } catch (error) {
        if (!(error instanceof Unavailable)) throw error
        if (error instanceof ServerFailed && !hasState(error, SqlState.conflict))
          set('it does not respond')
        return undefined
      }
    },
    /** Reports whether the rows of a read had the data version of the primary. */
    compared: (isCurrent: boolean) => {
      oldReads = isCurrent ? 0 : oldReads + 1
      if (isCurrent) set(undefined)
      else if (oldReads >= OLD_READS) set('it is behind the primary')
    },
    /** True if it is in use. Without success, one read at a time tries it again. */
    isUsable: () => {
      if (unusableReason === undefined) return true
      if (performance.now() < usableAt) return false
      usableAt = performance.now() + UNUSED_MS
      return true
    },
  }
}
