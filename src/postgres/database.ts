import type { Reader } from './reader.ts'
import { type OnReplicaChange, Replica, type ReplicaState } from './replica.ts'
import { Server, type ServerOptions, type ServerState } from './server.ts'
import { allowsStandby, sameDatabase, serverUrls } from './server-urls.ts'
import type { Parameter, Statement } from './statements.ts'
import type { RawRows } from './wire/query.ts'

export interface DatabaseOptions extends Omit<ServerOptions, 'standby' | 'newestUrl'> {
  /** Replicas to read from: URLs separated by commas, each with one or more hosts. */
  replicaUrl?: string | undefined
  /** Returns both lists with the newest users and passwords. */
  newestUrls?: () => Pick<DatabaseOptions, 'url' | 'replicaUrl'>
  onReplicaChange?: OnReplicaChange
}

/** Databases of the service: a primary, and replicas if the settings name any. */
export class Database {
  /** True if the primary may be a standby: DATABASE_URL allows it. */
  readonly allowsStandby: boolean
  readonly #size: number
  readonly #primary: Server
  /** The next one is first. */
  readonly #replicas: Replica[]

  /** The servers connect when they are first read. */
  constructor(options: DatabaseOptions) {
    const { newestUrls = () => options, onReplicaChange = () => {}, size, url } = options
    this.allowsStandby = allowsStandby(url)
    this.#size = size
    this.#primary = new Server({
      ...options,
      newestUrl: (known) => sameDatabase(newestUrls().url, known),
    })
    this.#replicas = serverUrls(options.replicaUrl ?? '').map((replicaUrl) => {
      const newestUrl = (known: string) => sameDatabase(newestUrls().replicaUrl ?? '', known)
      const replicaOptions = { ...options, url: replicaUrl, newestUrl, standby: true }
      return new Replica(replicaOptions, onReplicaChange)
    })
  }

  /** Runs a SELECT of a request on the primary. @throws Unavailable if no response arrives in time */
  read(statement: Statement, values: Parameter[], reader: Reader): Promise<RawRows> {
    return this.#primary.read(statement, values, reader)
  }

  /** Runs a statement of a health check or metric on the primary, ahead of all requests. @throws Unavailable */
  probe(statement: Statement, values: Parameter[]): Promise<RawRows> {
    return this.#primary.probe(statement, values)
  }

  /** Returns the usable replicas one after the other (round robin). Skips one with many more waiting reads than the primary: it is overloaded. */
  replica(): Replica | undefined {
    const replicas = this.#replicas
    if (replicas.length === 0) return undefined
    const most = this.#primary.state().waiting + this.#size
    const next = replicas.find((replica) => replica.state().waiting <= most && replica.isUsable())
    if (next) replicas.push(...replicas.splice(replicas.indexOf(next), 1))
    return next
  }

  state(): { primary: ServerState; replicas: ReplicaState[] } {
    return {
      primary: this.#primary.state(),
      replicas: this.#replicas.map((replica) => replica.state()),
    }
  }

  /** Replaces all connections. @throws Error if a server accepts no new one */
  async renew(): Promise<void> {
    await Promise.all([this.#primary, ...this.#replicas].map((server) => server.renew()))
  }

  close(): void {
    for (const server of [this.#primary, ...this.#replicas]) server.close()
  }
}
