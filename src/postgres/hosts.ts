import { type ConnectOptions, connect, findServers, NewestPrimary } from './connect.ts'
import { serverName, serverUrls } from './server-urls.ts'
import type { WireClient } from './wire/client.ts'

/** Time that other hosts get to respond, after the first one did, in ms. */
const COMPARE_MS = 500

const CITUS = `select from pg_extension where extname = 'citus'`

/** The hosts of a URL, of which one is in use: the newest primary. */
export class Hosts {
  readonly #options: ConnectOptions
  readonly #onMove: (server: string) => void
  readonly #primary = new NewestPrimary()
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

  /** Connects to the host in use. If it accepts no connection, connects to another one. */
  async connect(): Promise<WireClient> {
    if (this.#urls.length > 1 && this.#primary.server === undefined) await this.#find(this.#urls)
    const [url] = this.#urls
    try {
      return await this.#open()
    } catch (error) {
      if (url === this.#urls[0]) await this.#find(this.#urls.slice(1))
      if (url === this.#urls[0]) throw error
      return await this.#open()
    }
  }

  async #open(): Promise<WireClient> {
    const [url = ''] = this.#urls
    const client = await connect({ ...this.#options, url })
    if (url === this.#urls[0]) return await this.#planned(client)
    client.end()
    return await this.#open()
  }

  /** On Citus, PostgreSQL must know the connection of a statement to plan it. A pooler has the settings of the role. */
  async #planned(client: WireClient): Promise<WireClient> {
    if (this.#options.pooler) return client
    this.#isCitus ??= (await client.query(CITUS)).rowCount === 1
    if (this.#isCitus) await client.query('set plan_cache_mode = auto')
    return client
  }

  /** Moves to another host if the one in use accepts no connection. @throws Error if none does */
  async test(): Promise<void> {
    const client = await this.connect()
    client.end()
  }

  #find(urls: string[]): Promise<void> {
    this.#search ??= this.#useNewest(urls).finally(() => {
      this.#search = undefined
    })
    return this.#search
  }

  /** Uses the newest primary of these, if one responds. @throws ServerFailed if a newer one has superseded it */
  async #useNewest(urls: string[]): Promise<void> {
    const [newest] = await findServers(this.#options, urls, COMPARE_MS).catch(() => [])
    if (newest === undefined) return
    const { url } = newest
    this.#primary.use(newest)
    if (url === this.#urls[0]) return
    this.#urls = [url, ...this.#urls.filter((each) => each !== url)]
    this.#onMove(serverName(url))
  }
}
