import { ProblemError, TransportError } from './errors.ts'
import { Http, type HttpOptions } from './http.ts'
import type { AccountTransaction, AssetsTransferOrder, PortfolioTransaction } from './types.ts'

export interface InvestmentDataOptions extends HttpOptions {
  /** Rows of a page, 1 to 10,000. Default: 1,000. */
  pageSize?: number
}

/** Days as YYYY-MM-DD, inclusive. */
export interface RangeOptions {
  from?: string | undefined
  to?: string | undefined
  signal?: AbortSignal | undefined
}

/** One page of changes. Store the rows and the cursor in one transaction. */
export interface Changes<Row> {
  /** New and changed rows, each in its latest state. */
  upserts: Row[]
  /** Identifiers of rows that no longer exist. */
  removed: string[]
  /** Position after these changes, for the next synchronization. */
  cursor: string
}

export interface SyncOptions<Row> {
  /** Stored cursor; null or undefined for an empty copy. */
  cursor?: string | null | undefined
  /** Stores a page of changes. The next page is read after it. */
  apply: (changes: Changes<Row>) => void | Promise<void>
  signal?: AbortSignal | undefined
}

/**
 * Result of a synchronization. `complete`: the copy has exactly `totalItems` rows. `cursor_expired`:
 * the changes are not known; delete the copy and its cursor, and synchronize again.
 */
export type SyncResult =
  | { status: 'complete'; cursor: string; totalItems: number }
  | { status: 'cursor_expired' }

interface Page<Row> {
  items: Row[]
  limit: number
  totalItems: number
}

interface ChangesPage<Row> extends Page<Row> {
  removed: string[]
  nextCursor: string
  hasMore: boolean
}

const PORTFOLIO = 'portfolios/transactions'
const ACCOUNT = 'accounts/transactions'

/** Client of the Investment Data Query Service. */
export class InvestmentData {
  readonly #http: Http
  readonly #pageSize: number

  /** @throws TypeError if an option is invalid; its message has no value of an option */
  constructor({ pageSize = 1000, ...options }: InvestmentDataOptions) {
    this.#http = new Http(options)
    this.#pageSize = pageSize
  }

  /** Selects a connection by its token. Sends no request. */
  connection(token: string): Connection {
    return new Connection(this.#http, this.#pageSize, token)
  }
}

/**
 * Lists of one connection. Every method throws a ProblemError for an error of the service, and a
 * TransportError if no usable response arrives.
 */
class Connection {
  readonly #http: Http
  readonly #pageSize: number
  readonly #path: string

  constructor(http: Http, pageSize: number, token: string) {
    this.#http = http
    this.#pageSize = pageSize
    this.#path = `api/v1/queries/connections/${encodeURIComponent(token)}`
  }

  /**
   * Iterates over portfolio transactions, newest first. All rows are of one state of the data. If the
   * data changes before the last page: ProblemError with the code `data_changed`.
   */
  portfolioTransactions(range: RangeOptions = {}): AsyncGenerator<PortfolioTransaction, void> {
    return this.#rows<PortfolioTransaction>(PORTFOLIO, range)
  }

  /** Iterates over account transactions, newest first, as portfolioTransactions(). */
  accountTransactions(range: RangeOptions = {}): AsyncGenerator<AccountTransaction, void> {
    return this.#rows<AccountTransaction>(ACCOUNT, range)
  }

  /** Returns all completed transfer orders, newest first. */
  async transferOrders(options: { signal?: AbortSignal } = {}): Promise<AssetsTransferOrder[]> {
    const { body } = await this.#http.get(`${this.#path}/assets-transfer`, {}, options.signal)
    return body as AssetsTransferOrder[]
  }

  /** Brings a copy of the portfolio transactions up to date. Calls `apply` once a page. */
  syncPortfolioTransactions(options: SyncOptions<PortfolioTransaction>): Promise<SyncResult> {
    return this.#sync(PORTFOLIO, options)
  }

  /** Brings a copy of the account transactions up to date. Calls `apply` once a page. */
  syncAccountTransactions(options: SyncOptions<AccountTransaction>): Promise<SyncResult> {
    return this.#sync(ACCOUNT, options)
  }

  async *#rows<Row>(list: string, range: RangeOptions): AsyncGenerator<Row, void> {
    const { from, to, signal } = range
    let version: string | undefined
    for (let page = 0; ; page += 1) {
      const query = { from, to, limit: this.#pageSize, page, version }
      const { body, headers } = await this.#http.get(`${this.#path}/${list}`, query, signal)
      const { items, limit, totalItems } = body as Page<Row>
      yield* items
      if ((page + 1) * limit >= totalItems) return
      version ??= headers.get('data-version') ?? undefined
      if (version === undefined)
        throw new TransportError('unexpected_response', 'The response has no Data-Version', 200)
    }
  }

  async #sync<Row>(list: string, { cursor, apply, signal }: SyncOptions<Row>): Promise<SyncResult> {
    const path = `${this.#path}/${list}`
    for (let since = cursor ?? 'start'; ; ) {
      const response = await this.#http
        .get(path, { since, limit: this.#pageSize }, signal)
        .catch(expired)
      if (response === undefined) return { status: 'cursor_expired' }
      const page = response.body as ChangesPage<Row>
      since = page.nextCursor
      await apply({ upserts: page.items, removed: page.removed, cursor: since })
      if (!page.hasMore) return { status: 'complete', cursor: since, totalItems: page.totalItems }
    }
  }
}

export type { Connection }

function expired(error: unknown): undefined {
  if (error instanceof ProblemError && error.code === 'cursor_expired') return undefined
  throw error
}
