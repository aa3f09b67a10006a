import type pg from 'pg'
import { withDeadline } from '../limits/deadline.ts'
import { ask, CONNECT_MS, type ConnectOptions, connect } from './connect.ts'
import { hasState, ServerFailed, ServerIsStandby, SqlState } from './failures.ts'
import { allowsStandby, serverName, serverUrls } from './server-urls.ts'
import type { WireClient } from './wire/client.ts'

/** A server that accepts connections, with the history of its data. */
interface FoundServer {
  url: string
  /** Identity of the database cluster; its standbys have the same one. Empty if the role may not read it. */
  cluster: string
  /** Each promotion begins a new timeline. 0: unknown, or a standby. */
  timeline: number
  /** Identity of the running server. Several addresses can lead to it. */
  started: string
}

/** True if one server was promoted while the other one was a primary: the other one lacks its changes. */
const supersedes = (one: FoundServer, other: FoundServer) =>
  one.cluster === other.cluster && other.timeline > 0 && one.timeline > other.timeline

// pg_control_checkpoint() has the timeline of the last checkpoint, which a new primary has not yet begun.
const HISTORY = `
  select system_identifier::text as cluster, pg_postmaster_start_time()::text as started,
    case when pg_is_in_recovery() then 0
      else ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::integer end as timeline
  from pg_control_system()`

/** Reads the history of a server, if the role may read it. A standby has a cluster, and timeline 0. */
async function historyOf(client: pg.ClientBase, url: string): Promise<FoundServer> {
  const { rows } = await ask(client, HISTORY).catch((error) => {
    if (hasState(error, SqlState.denied)) return { rows: [] }
    throw error
  })
  return { url, cluster: '', timeline: 0, started: url, ...rows[0] }
}

/** Reads the history of a primary. @throws ServerIsStandby unless the URL allows a standby */
async function primaryOf(
  { standby }: Omit<ConnectOptions, 'url'>,
  client: pg.ClientBase,
  url: string,
): Promise<FoundServer> {
  const server = await historyOf(client, url)
  // Behind PgBouncer, only this query tells (connect.ts). A standby that is remembered with timeline 0 would not supersede the
  // old primary after its promotion.
  const isStandby = server.cluster !== '' && server.timeline === 0
  if (isStandby && !(standby ?? allowsStandby(url)))
    throw new ServerIsStandby(`${serverName(url)} is a standby`)
  return server
}

/**
 * Finds the primaries that accept connections, newest timeline first. It tries all at once: one of them may be silent.
 * @param compareMs time after the first response in which the others may respond
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
    const server = await primaryOf(options, client, url).finally(() => client.destroy())
    found.push(server)
  })
  await Promise.any(tests)
  await withDeadline<unknown>(Promise.allSettled(tests), compareMs, () => {})
  return found.toSorted((one, other) => other.timeline - one.timeline)
}

/** Time that other hosts get to respond, after the first one did, in ms. */
const COMPARE_MS = 500

const CITUS = `select from pg_extension where extname = 'citus'`

/**
 * The hosts of a URL, of which one is in use: the newest primary. After a failover, the old primary may come back while
 * the new one restarts. Reads from it would be old, and writes to it would be lost.
 */
export class Hosts {
  readonly #options: ConnectOptions
  readonly #onMove: (server: string) => void
  readonly #urlOf = new WeakMap<WireClient, string>()
  #newest: FoundServer | undefined
  /** The first one is in use. */
  #urls: string[]
  #isCitus: boolean | undefined
  #search: Promise<void> | undefined

  /** @param onMove called with `host:port` when another host is used from now on */
  constructor(options: ConnectOptions, onMove: (server: string) => void) {
    this.#options = options
    this.#onMove = onMove
    this.#urls = serverUrls(options.url)
  }

  /** Connects to the host in use. If it accepts no connection, connects to the newest primary of the others. */
  async connect(): Promise<WireClient> {
    if (this.#urls.length > 1 && this.#newest === undefined) await this.#find(this.#urls)
    const [url = '', ...others] = this.#urls
    const client = await connect({ ...this.#options, url }).catch(async (error) => {
      if (url === this.#urls[0]) await this.#find(others)
      if (url === this.#urls[0]) throw error
    })
    // Meanwhile, another host has come into use.
    if (client === undefined) return await this.connect()
    // No host was a primary, so nothing is known of this one.
    if (this.#urls.length > 1 && this.#newest === undefined) await this.#learn(client, url)
    this.#urlOf.set(client, url)
    // On Citus, PostgreSQL must know the connection of a statement to plan it. A pooler has the settings of the role.
    if (!this.#options.pooler) this.#isCitus ??= (await ask(client, CITUS)).rowCount === 1
    if (this.#isCitus) await ask(client, 'set plan_cache_mode = auto')
    return client
  }

  /** False for a client of another host: a failover may end while a client connects. */
  isInUse(client: WireClient): boolean {
    return this.#urlOf.get(client) === this.#urls[0]
  }

  /** URL of the host in use. */
  get url(): string {
    return this.#urls[0] ?? ''
  }

  /**
   * Waits for all of several hosts, and moves to a newer primary, even while the one in use responds.
   * @throws ServerFailed if no primary responds, or as #use()
   */
  async follow(): Promise<void> {
    if (this.#urls.length === 1) return
    const all = findServers(this.#options, this.#urls, CONNECT_MS)
    const found = await all.catch(({ errors }: AggregateError) => {
      const reasons = errors.map(({ message }: Error) => message).join('; ')
      throw new ServerFailed(`No server in DATABASE_URL is a primary that responds (${reasons})`)
    })
    this.#use(found)
  }

  /** Uses the newest primary of these, if one responds. @throws ServerFailed as #use() */
  #find(urls: string[]): Promise<void> {
    this.#search ??= findServers(this.#options, urls, COMPARE_MS)
      .then(
        (found) => this.#use(found),
        () => {},
      )
      .finally(() => {
        this.#search = undefined
      })
    return this.#search
  }

  /** @throws ServerIsStandby as primaryOf(), and the client is closed */
  async #learn(client: pg.ClientBase & { destroy(): void }, url: string): Promise<void> {
    try {
      this.#remember(await primaryOf(this.#options, client, url))
    } catch (error) {
      client.destroy()
      throw error
    }
  }

  /** Checks the server of a client: an address may lead to another one each time. @throws ServerFailed as #remember() */
  async accept(client: pg.ClientBase): Promise<void> {
    this.#remember(await historyOf(client, this.url))
  }

  /** @throws ServerFailed if a newer primary has superseded this one */
  #remember(server: FoundServer): void {
    if (this.#newest && supersedes(this.#newest, server))
      throw new ServerFailed(
        `${serverName(server.url)} is a superseded primary: it lacks changes of ${serverName(this.#newest.url)}`,
      )
    this.#newest = server
  }

  /** @throws ServerFailed if the one in use has superseded the newest one, or none of two others has replaced the other */
  #use([newest, ...others]: FoundServer[]): void {
    const used = others.find(({ url }) => url === this.#newest?.url)
    if (newest === undefined || (used && !supersedes(newest, used))) return
    const rival = others.find(
      (other) =>
        other.started !== newest.started && other.timeline > 0 && !supersedes(newest, other),
    )
    if (rival)
      throw new ServerFailed(
        `${serverName(newest.url)} and ${serverName(rival.url)} in DATABASE_URL are both primaries, and neither ` +
          'replaced the other: DATABASE_URL must name only the one that is in use',
      )
    this.#remember(newest)
    const { url } = newest
    if (url === this.#urls[0]) return
    this.#urls = [url, ...this.#urls.filter((each) => each !== url)]
    this.#onMove(serverName(url))
  }
}
