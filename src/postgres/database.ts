import { openReplica, type Replica, type ReplicaState, watchReplicas } from './replicas.ts'
import { openServer, type PostgresServer, type ServerOptions, type ServerState } from './server.ts'
import { allowsStandby, sameDatabase, serverUrls } from './server-urls.ts'

/** Databases of the service: a primary, and replicas if the settings name any. */
export interface Database extends Pick<PostgresServer, 'read' | 'probe' | 'renew' | 'close'> {
  /** Chooses a usable replica by the hash of a connection token. Absent without DATABASE_REPLICA_URL. */
  replica?: ((key: Buffer) => Replica | undefined) | undefined
  state(): DatabaseState
  onReplicaChange(listener: (replica: ReplicaState) => void): void
  /** Calls the listener with `host:port` after each failover to another server of DATABASE_URL. */
  onFailover(listener: (server: string) => void): void
  /** True if the primary may be a standby: DATABASE_URL allows it. */
  allowsStandby: boolean
}

export interface DatabaseState {
  primary: ServerState
  replicas: ReplicaState[]
}

export interface DatabaseOptions
  extends Omit<ServerOptions, 'queue' | 'largePlaces' | 'standby' | 'onFailover' | 'newestUrl'> {
  /** Maximum number of requests that wait for a place. */
  queue: number
  /** Replicas to read from: URLs separated by commas, each with one or more hosts. */
  replicaUrl?: string | undefined
  replicaMaxLagMs: number
  /** Returns both lists with the newest users and passwords. @param rejected true after a rejected login */
  newestUrls?: (rejected: boolean) => Pick<DatabaseOptions, 'url' | 'replicaUrl'>
}

/** Share of the connections that large requests may use at once. */
const LARGE_SHARE = 0.1
const MAX_REPLICA_CHECK_MS = 500

export function openDatabase(options: DatabaseOptions): Database {
  const { replicaMaxLagMs, newestUrls = () => options } = options
  const server = { ...options, largePlaces: Math.ceil(options.size * LARGE_SHARE) }
  let failoverListener: (server: string) => void = () => {}
  const primary = openServer({
    ...server,
    newestUrl: (url, rejected) => sameDatabase(newestUrls(rejected).url, url),
    onFailover: (name) => failoverListener(name),
  })
  let listener: (replica: ReplicaState) => void = () => {}
  const all = serverUrls(options.replicaUrl ?? '').map((url) =>
    openReplica({
      ...server,
      url,
      newestUrl: (url, rejected) => sameDatabase(newestUrls(rejected).replicaUrl ?? '', url),
      standby: true,
      maxLagMs: replicaMaxLagMs,
      onChange: (state) => listener(state),
    }),
  )
  const replicas = watchReplicas(primary, all, Math.min(MAX_REPLICA_CHECK_MS, replicaMaxLagMs / 4))
  return {
    read: primary.read,
    probe: primary.probe,
    replica: all.length > 0 ? replicas.nearest : undefined,
    state: () => ({
      primary: primary.state(),
      replicas: all.map((replica) => replica.state()),
    }),
    allowsStandby: allowsStandby(options.url),
    onFailover: (callback) => {
      failoverListener = callback
    },
    onReplicaChange: (callback) => {
      listener = callback
      for (const replica of all) callback(replica.state())
    },
    renew: async () => {
      await Promise.all([primary, ...all].map((each) => each.renew()))
    },
    close: async () => {
      replicas.close()
      await Promise.all([primary, ...all].map((each) => each.close()))
    },
  }
}

/** Wraps a read, for example to measure or trace it. Calls `run` once and returns its result. */
export type Instrumentation = <T>(statement: string, run: () => Promise<T>) => Promise<T>

/** Returns the database with each read of a request instrumented. */
export function instrumentReads(db: Database, instrumentations: Instrumentation[]): Database {
  return instrumentations.reduce(instrumented, db)
}

type ReadParameters = Parameters<PostgresServer['read']>

function instrumented(db: Database, instrument: Instrumentation): Database {
  const wrap =
    <Rows>(read: (...query: ReadParameters) => Promise<Rows>) =>
    (...query: ReadParameters) =>
      instrument(query[0].title, () => read(...query))
  const { replica: find } = db
  return {
    ...db,
    read: wrap(db.read),
    replica:
      find &&
      ((key) => {
        const replica = find(key)
        return replica && { ...replica, read: wrap(replica.read) }
      }),
  }
}
