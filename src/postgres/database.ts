import { openServer, type ServerOptions } from './postgres-server.ts'
import { openReplica, type Replica, type ReplicaState } from './replicas.ts'
import { allowsStandby, sameDatabase, serverUrls } from './server-urls.ts'

export interface DatabaseOptions extends Omit<ServerOptions, 'standby' | 'newestUrl'> {
  /** Replicas to read from: URLs separated by commas, each with one or more hosts. */
  replicaUrl?: string | undefined
  /** Returns both lists with the newest users and passwords. */
  newestUrls?: () => Pick<DatabaseOptions, 'url' | 'replicaUrl'>
  onReplicaChange?: (replica: ReplicaState) => void
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
  const replicas = serverUrls(options.replicaUrl ?? '').map((url) => {
    const newestUrl = (url: string) => sameDatabase(newestUrls().replicaUrl ?? '', url)
    return openReplica({ ...options, url, newestUrl, standby: true }, onReplicaChange)
  })
  const servers = [primary, ...replicas]
  let turn = 0
  /** Skips a replica with many more waiting reads than the primary: it is overloaded. */
  const nextReplica = (): Replica | undefined => {
    for (const _ of replicas) {
      turn = (turn + 1) % replicas.length
      const replica = replicas[turn]
      if (replica === undefined || replica.state().waiting > primary.state().waiting + size)
        continue
      if (replica.isUsable()) return replica
    }
    return undefined
  }
  return {
    read: primary.read,
    probe: primary.probe,
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
    close: async () => {
      await Promise.all(servers.map((server) => server.close()))
    },
  }
}
