import { ServerFailed } from './failures.ts'
import { serverName } from './server-urls.ts'

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
  #newest: FoundServer | undefined

  /** The newest one; undefined before the first. */
  get server(): FoundServer | undefined {
    return this.#newest
  }

  /** Remembers a server that will be used. @throws ServerFailed if a newer one has superseded it */
  use(server: FoundServer): void {
    const newest = this.#newest
    if (newest && supersedes(newest, server))
      throw new ServerFailed(
        `${serverName(server.url)} is a superseded primary: it lacks changes of ${serverName(newest.url)}`,
      )
    this.#newest = server
  }
}
