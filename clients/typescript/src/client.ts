import type { Call } from './call.ts'
import { CallEnd } from './call-end.ts'
import {
  type ChangesPage,
  type CopyStore,
  CopySync,
  type ListName,
  type OnChanges,
  type Page,
  type SyncedCopies,
} from './copy.ts'
import { isLostCursor, TransportError } from './errors.ts'
import { CSV, Http, type HttpOptions, NDJSON, refreshedAtOf, transportError } from './http.ts'
import { oneSync } from './one-sync.ts'
import { connectionToken, dayOf, functionOf, integerOf, visibleAscii } from './options.ts'
import { isShallow, tooDeep, UnusableResponse } from './response-body.ts'
import { checkOrders, checkPage, checkRow } from './response-rows.ts'
import type { AccountTransaction, AssetsTransferOrder, PortfolioTransaction } from './rows.ts'

export interface InvestmentDataOptions extends HttpOptions {
  /** Rows of a page, 1 to 10,000. Default: 1,000. */
  pageSize?: number
}

export interface ConnectionOptions {
  /** Your name for the requests, as `X-Client-Trace-ID`. Default: a new one for each call. */
  traceId?: string
}

export interface CallOptions {
  /** Ends the call, and its delays. */
  signal?: AbortSignal | undefined
}

/** Days as YYYY-MM-DD, inclusive. */
export interface RangeOptions extends CallOptions {
  from?: string | undefined
  to?: string | undefined
}

export interface ListOptions extends RangeOptions {
  /** Most rows, 1 or more: with 20, the newest 20. Default: all. */
  limit?: number | undefined
}

export interface SyncTransactionsOptions<Client = void, Bound = unknown> extends CallOptions {
  /**
   * Called with the changes of each list, inside the transaction that writes them. Rows that you write to
   * the same database are part of it. `store` of the changes reads the copy as it is after them. If the copy replaces
   * another one, there may be several calls.
   */
  onChanges?: OnChanges<Client, Bound> | undefined
}

/** What the response says of all rows. Both are null before the first row. */
export interface ListFacts {
  /** Rows between `from` and `to`. */
  readonly totalItems: number | null
  /** Time at which the service last read the institution; null before the first time. */
  readonly refreshedAt: Date | null
}

/** Rows of a list, with its facts. */
export type Rows<Row> = AsyncGenerator<Row, void> & ListFacts

/** One page of changes. Store the rows and the cursor in one transaction. */
export interface Changes<Row> {
  /** New and changed rows, each in its latest state. */
  upserts: Row[]
  /** Identifiers of rows that no longer exist. */
  removed: string[]
  /** Position after these changes, for the next synchronization. */
  cursor: string
}

export interface SyncOptions<Row> extends CallOptions {
  /** Stored cursor; null or undefined for an empty copy. */
  cursor?: string | null | undefined
  /** Stores a page of changes. The next page is read after it. */
  apply: (changes: Changes<Row>) => void | Promise<void>
  /** Counts the rows of the copy, to compare it with the list. */
  count?: () => number | Promise<number>
}

/**
 * Result of a synchronization. `complete`: the list has `totalItems` rows, and so has the copy.
 * `cursor_expired`: the changes are not known. `count_differs`: the copy has another number of rows.
 * After the last two, delete the copy and its cursor, and synchronize again.
 */
export type SyncResult =
  | { status: 'complete'; cursor: string; totalItems: number; refreshedAt: Date | null }
  | { status: 'cursor_expired' }
  | { status: 'count_differs'; totalItems: number; count: number }

const PORTFOLIO = 'portfolios/transactions'
const ACCOUNT = 'accounts/transactions'
const ORDERS = 'assets-transfer'
/** Names of the copies of the lists. */
const NAMES = { [PORTFOLIO]: 'portfolio_transactions', [ACCOUNT]: 'account_transactions' } as const
type List = keyof typeof NAMES
/** Most characters of a row of an export. No import accepts a longer one. */
const MAX_ROW_LENGTH = 2 ** 20

/** Client of the Investment Data Query Service. */
export class InvestmentData {
  readonly #http: Http
  readonly #pageSize: number

  /** @throws TypeError if an option is invalid; its message has no value of an option */
  constructor({ pageSize = 1000, ...options }: InvestmentDataOptions) {
    this.#http = new Http(options)
    this.#pageSize = integerOf('pageSize', pageSize, 1, 10_000)
  }

  /**
   * Selects a connection by its token. Sends no request.
   * @throws TypeError if a parameter is invalid; its message has no value
   */
  connection(token: string, { traceId }: ConnectionOptions = {}): Connection {
    if (traceId !== undefined) visibleAscii('traceId', traceId, 128)
    return new Connection(this.#http, this.#pageSize, connectionToken(token), traceId)
  }
}

/**
 * Lists of one connection. Every method throws a ProblemError for an error of the service, and a
 * TransportError if no usable response arrives.
 */
class Connection {
  readonly #http: Http
  readonly #pageSize: number
  readonly #token: string
  readonly #traceId: string | undefined

  constructor(http: Http, pageSize: number, token: string, traceId: string | undefined) {
    this.#http = http
    this.#pageSize = pageSize
    this.#token = token
    this.#traceId = traceId
  }

  /**
   * Iterates over portfolio transactions, newest first. All rows are of one state of the data. If the
   * data changes before the last page: ProblemError with the code `data_changed`.
   */
  portfolioTransactions(options: ListOptions = {}): Rows<PortfolioTransaction> {
    return rowsOf((facts) => this.#rows(PORTFOLIO, options, facts))
  }

  /** Iterates over account transactions, newest first, as portfolioTransactions(). */
  accountTransactions(options: ListOptions = {}): Rows<AccountTransaction> {
    return rowsOf((facts) => this.#rows(ACCOUNT, options, facts))
  }

  /** Returns all completed transfer orders, newest first, with the time of the last refresh. */
  async transferOrders(
    options: CallOptions = {},
  ): Promise<AssetsTransferOrder[] & Pick<ListFacts, 'refreshedAt'>> {
    const { items, refreshedAt } = await this.#orders(this.#call(ORDERS, options))
    return Object.defineProperty(items, 'refreshedAt', { value: refreshedAt }) as typeof items &
      Pick<ListFacts, 'refreshedAt'>
  }

  /**
   * Iterates over portfolio transactions as portfolioTransactions(), in one response. If the data changes
   * meanwhile: TransportError with the code `incomplete_body`, after a part of the rows.
   */
  exportPortfolioTransactions(range: RangeOptions = {}): Rows<PortfolioTransaction> {
    return rowsOf((facts) => this.#exportRows(PORTFOLIO, range, facts))
  }

  /** Iterates over account transactions in one response, as exportPortfolioTransactions(). */
  exportAccountTransactions(range: RangeOptions = {}): Rows<AccountTransaction> {
    return rowsOf((facts) => this.#exportRows(ACCOUNT, range, facts))
  }

  /** Iterates over the parts of a CSV file of portfolio transactions. */
  exportPortfolioTransactionsCsv(range: RangeOptions = {}): AsyncGenerator<Uint8Array, void> {
    return this.#exportCsv(PORTFOLIO, range)
  }

  /** Iterates over the parts of a CSV file of account transactions. */
  exportAccountTransactionsCsv(range: RangeOptions = {}): AsyncGenerator<Uint8Array, void> {
    return this.#exportCsv(ACCOUNT, range)
  }

  /**
   * Brings the copies of all lists up to date. If the changes are not known, it builds a second copy,
   * which replaces the first one when it is complete. Without changes, it sends one request. Calls at the
   * same time for one copy share a synchronization, or run one after the other.
   * @throws CopyError if the copy has another number of rows than the list, or another process writes it
   */
  async syncTransactions<Client = void, Bound = unknown>(
    store: CopyStore<Client, Bound>,
    options: SyncTransactionsOptions<Client, Bound> = {},
  ): Promise<SyncedCopies> {
    const onChanges = functionOf('onChanges', options.onChanges)
    const shared = { http: this.#http, token: this.#token, onChanges, signal: options.signal }
    const call = this.#call('', options)
    const end = new CallEnd(call)
    const run = () => this.#syncStore(new CopySync(store, options.onChanges, end), call)
    try {
      return await oneSync(store, shared, end, run)
    } finally {
      end.close()
    }
  }

  async #syncStore<Client, Bound>(
    sync: CopySync<Client, Bound>,
    call: Call,
  ): Promise<SyncedCopies> {
    const portfolio = await sync.changes('portfolio_transactions', (cursor) =>
      this.#changes<PortfolioTransaction>({ ...call, list: PORTFOLIO }, cursor),
    )
    const account =
      (await sync.unchanged('account_transactions')) ??
      (await sync.changes('account_transactions', (cursor) =>
        this.#changes<AccountTransaction>({ ...call, list: ACCOUNT }, cursor),
      ))
    const orders =
      (await sync.unchanged('transfer_orders')) ??
      (await sync.replace('transfer_orders', await this.#orders({ ...call, list: ORDERS })))
    return { portfolio, account, orders }
  }

  /** Brings your own copy of the portfolio transactions up to date. Calls `apply` once a page. */
  syncPortfolioTransactions(options: SyncOptions<PortfolioTransaction>): Promise<SyncResult> {
    return this.#sync(PORTFOLIO, options)
  }

  /** Brings your own copy of the account transactions up to date. Calls `apply` once a page. */
  syncAccountTransactions(options: SyncOptions<AccountTransaction>): Promise<SyncResult> {
    return this.#sync(ACCOUNT, options)
  }

  #call(list: string, { signal }: CallOptions): Call {
    return this.#http.call(this.#token, list, this.#traceId, signal)
  }

  async *#rows<Row>(list: List, options: ListOptions, facts: Facts): AsyncGenerator<Row, void> {
    const days = daysOf(options)
    const call = this.#call(list, options)
    let left = integerOf('limit', options.limit ?? MAX_LIMIT, 1, MAX_LIMIT)
    const pageSize = Math.min(this.#pageSize, left)
    let version: string | undefined
    for (let page = 0; ; page += 1) {
      const query = { ...days, limit: pageSize, page, version }
      const { body, headers } = await this.#http.get(call, query, (page) =>
        checkPage(NAMES[list], page, false),
      )
      const { items, limit, totalItems } = body as Page<Row>
      facts.totalItems = totalItems
      facts.refreshedAt = refreshedAtOf(headers)
      yield* items.slice(0, left)
      left -= items.length
      if (left <= 0 || (page + 1) * limit >= totalItems) return
      version ??= headers.get('data-version') ?? undefined
      if (version === undefined)
        throw new TransportError('unexpected_response', 'The response has no Data-Version', {
          status: 200,
          traceId: call.traceId,
        })
    }
  }

  async *#exportRows<Row>(
    list: List,
    range: RangeOptions,
    facts: Facts,
  ): AsyncGenerator<Row, void> {
    const call = this.#call(list, range)
    const { headers, parts } = await this.#http.open(call, daysOf(range), NDJSON)
    facts.refreshedAt = refreshedAtOf(headers)
    const total = headers.get('x-total-count')
    if (total !== null) facts.totalItems = Number(total)
    const decoder = new TextDecoder()
    let text = ''
    let rows = 0
    for await (const part of parts) {
      text += decoder.decode(part, { stream: true })
      const lines = text.split('\n')
      text = lines.pop() ?? ''
      rows += lines.length
      if (text.length > MAX_ROW_LENGTH)
        throw unusable(call, new UnusableResponse('A row of the response is too long'))
      for (const line of lines) yield rowOf<Row>(call, NAMES[list], line)
    }
    // A proxy that ends the connection without an error.
    if (rows !== (facts.totalItems ?? rows) || text !== '')
      throw transportError('incomplete_body', { status: 200, traceId: call.traceId })
  }

  async *#exportCsv(list: string, range: RangeOptions): AsyncGenerator<Uint8Array, void> {
    const { parts } = await this.#http.open(this.#call(list, range), daysOf(range), CSV)
    yield* parts
  }

  /** Returns all transfer orders, as one page of changes. */
  async #orders(call: Call): Promise<ChangesPage<AssetsTransferOrder>> {
    const { body, headers } = await this.#http.get(call, {}, checkOrders)
    const items = body as AssetsTransferOrder[]
    const page = {
      items,
      limit: items.length,
      totalItems: items.length,
      removed: [],
      hasMore: false,
    }
    const version = headers.get('data-version')
    return { ...page, nextCursor: version ?? '', version, refreshedAt: refreshedAtOf(headers) }
  }

  async *#changes<Row>(call: Call, cursor: string | null): AsyncGenerator<ChangesPage<Row>, void> {
    for (let since = cursor ?? 'start', hasMore = true; hasMore; ) {
      const query = { since, limit: this.#pageSize }
      const { body, headers } = await this.#http.get(call, query, (page) =>
        checkPage(NAMES[call.list as List], page, true),
      )
      const page = body as ChangesPage<Row>
      page.version = headers.get('data-version')
      page.refreshedAt = refreshedAtOf(headers)
      yield page
      since = page.nextCursor
      hasMore = page.hasMore
    }
  }

  async #sync<Row>(list: string, options: SyncOptions<Row>): Promise<SyncResult> {
    const call = this.#call(list, options)
    let cursor = options.cursor ?? null
    let totalItems = 0
    let refreshedAt: Date | null = null
    const pages = this.#changes<Row>(call, cursor)
    for (;;) {
      const next = await pages.next().catch(lost)
      if (next === undefined) return { status: 'cursor_expired' }
      if (next.done) break
      const { items: upserts, removed, nextCursor } = next.value
      await options.apply({ upserts, removed, cursor: nextCursor })
      cursor = nextCursor
      totalItems = next.value.totalItems
      refreshedAt = next.value.refreshedAt
    }
    const count = (await options.count?.()) ?? totalItems
    if (count !== totalItems) return { status: 'count_differs', totalItems, count }
    return { status: 'complete', cursor: cursor ?? '', totalItems, refreshedAt }
  }
}

export type { Connection }

/** Returns a row of an export. */
function rowOf<Row>(call: Call, list: ListName, line: string): Row {
  let row: unknown
  try {
    if (line.length > MAX_ROW_LENGTH)
      throw new UnusableResponse('A row of the response is too long')
    row = JSON.parse(line)
    if (!isShallow(row)) throw tooDeep()
    checkRow(list, row)
  } catch (error) {
    // The error of JSON.parse() has a part of the row.
    throw unusable(call, error)
  }
  return row as Row
}

function unusable(call: Call, error: unknown): TransportError {
  const facts = { status: 200, traceId: call.traceId }
  if (!(error instanceof UnusableResponse)) return transportError('unexpected_response', facts)
  return new TransportError('unexpected_response', error.message, facts)
}

type Facts = { -readonly [Name in keyof ListFacts]: ListFacts[Name] }

const MAX_LIMIT = 2 ** 31 - 1

const daysOf = ({ from, to }: RangeOptions) => ({ from: dayOf('from', from), to: dayOf('to', to) })

/** Adds the facts of the responses to the rows. */
function rowsOf<Row>(start: (facts: Facts) => AsyncGenerator<Row, void>): Rows<Row> {
  const facts: Facts = { totalItems: null, refreshedAt: null }
  const get = <Name extends keyof Facts>(name: Name) => ({ get: () => facts[name] })
  const properties = { totalItems: get('totalItems'), refreshedAt: get('refreshedAt') }
  return Object.defineProperties(start(facts), properties) as Rows<Row>
}

function lost(error: unknown): undefined {
  if (isLostCursor(error)) return undefined
  throw error
}
