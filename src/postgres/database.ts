import {
  openServer,
  type PostgresServer,
  type ServerOptions,
  type ServerState,
} from './postgres-server.ts'
import { openReplica, type Replica, type ReplicaState, takeTurns } from './replicas.ts'
import { allowsStandby, sameDatabase, serverUrls } from './server-urls.ts'

/** Databases of the service: a primary, and replicas if the settings name any. */
export interface Database extends Pick<PostgresServer, 'read' | 'probe' | 'renew' | 'close'> {
  /** Chooses a usable replica. Absent without DATABASE_REPLICA_URL. */
  replica?: (() => Replica | undefined) | undefined
  state(): DatabaseState
  onReplicaChange(listener: (replica: ReplicaState) => void): void
  /** Calls the listener with `host:port` after each failover to another host of DATABASE_URL. */
  onFailover(listener: (server: string) => void): void
  /** True if the primary may be a standby: DATABASE_URL allows it. */
  allowsStandby: boolean
}

export interface DatabaseState {
  primary: ServerState
  replicas: ReplicaState[]
}

export interface DatabaseOptions
  extends Omit<ServerOptions, 'standby' | 'onFailover' | 'newestUrl'> {
  /** Replicas to read from: URLs separated by commas, each with one or more hosts. */
  replicaUrl?: string | undefined
  /** Returns both lists with the newest users and passwords. @param rejected true after a rejected login */
  newestUrls?: (rejected: boolean) => Pick<DatabaseOptions, 'url' | 'replicaUrl'>
}

export function openDatabase(options: DatabaseOptions): Database {
  const { newestUrls = () => options } = options
  let failoverListener: (server: string) => void = () => {}
  const primary = openServer({
    ...options,
    newestUrl: (url, rejected) => sameDatabase(newestUrls(rejected).url, url),
    onFailover: (name) => failoverListener(name),
  })
  let replicaListener: (replica: ReplicaState) => void = () => {}
  const replicas = serverUrls(options.replicaUrl ?? '').map((url) =>
    openReplica(
      {
        ...options,
        url,
        newestUrl: (url, rejected) => sameDatabase(newestUrls(rejected).replicaUrl ?? '', url),
        standby: true,
      },
      (state) => replicaListener(state),
    ),
  )
  const all = [primary, ...replicas]
  return {
    read: primary.read,
    probe: primary.probe,
    replica: replicas.length > 0 ? takeTurns(replicas) : undefined,
    state: () => ({
      primary: primary.state(),
      replicas: replicas.map((replica) => replica.state()),
    }),
    allowsStandby: allowsStandby(options.url),
    onFailover: (listener) => {
      failoverListener = listener
    },
    onReplicaChange: (listener) => {
      replicaListener = listener
    },
    renew: async () => {
      await Promise.all(all.map((each) => each.renew()))
    },
    close: async () => {
      await Promise.all(all.map((each) => each.close()))
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
  const { replica: choose } = db
  return {
    ...db,
    read: wrap(db.read),
    replica:
      choose &&
      (() => {
        const replica = choose()
        return replica && { ...replica, read: wrap(replica.read) }
      }),
  }
}
