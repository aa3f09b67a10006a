import type { ReadContext } from '../limits/context.ts'
import { ResponseTooLarge, Unavailable } from '../limits/errors.ts'
import type { MemoryReservation } from '../limits/response-memory.ts'
import { type ConnectOptions, connect, findServers } from './connect.ts'
import {
  asUnavailable,
  isBroken,
  isConnectionFailure,
  isCut,
  isLostPlan,
  isReset,
  ServerFailed,
  ServerSilent,
} from './errors.ts'
import { NewestPrimary, supersedes } from './history.ts'
import { serverName, serverUrls } from './server-urls.ts'
import { type Parameter, type Statement, unnamed } from './statements.ts'
import { createSockets, type WireClient } from './wire/client.ts'
import { sendQuery } from './wire/query.ts'
import { RawRows } from './wire/raw-rows.ts'

export interface ConnectionsOptions extends ConnectOptions {
  /** Maximum connections for requests. Health checks and metrics use one more. */
  size: number
  /** False if the pooler does not support prepared statements (PgBouncer before 1.21). */
  prepare: boolean
  /** Called with `host:port` after a failover to another server of the URL. */
  onFailover?: ((server: string) => void) | undefined
}

export interface ReadOptions {
  due: number
  context?: ReadContext
  reservation?: MemoryReservation | undefined
  /** True if no other read may share the connection: for large reads, and for second attempts. */
  alone?: boolean
  probe?: boolean
}

const DEPTH = 8
/** Minimum time that a server must have for a response before it counts as silent, in ms. */
const FAIR_MS = 100
/** Maximum duration of a probe, in ms: a little above lock_timeout. */
const PROBE_MS = 1_200
/** After a cut, connections without a response within this time may be dead as well, in ms. */
const RESPONDED_MS = 1_000
/** Time without a completed read after which a connection gets no further reads, in ms. */
const STALLED_MS = 250
/** Interval of the checks of connections and of waiting reads, in ms. */
const CHECK_MS = 100
/** Time after a refused connection before the next attempt, while others are open, in ms. */
const REOPEN_MS = 1_000
/** Idle time before a connection is closed, in ms. A new one plans each statement, which slows the first requests. */
const IDLE_MS = 600_000
/** Interval of the searches for a newer primary, if the URL names several hosts, in ms. */
const COMPARE_EVERY_MS = 5_000
/** Time that other servers get to respond, after the first one did, in ms. */
const COMPARE_MS = 500

interface Read extends ReadOptions {
  group: Group
  statement: Statement
  values: Parameter[]
  repeated: boolean
  sentAt: number
  resolve(rows: RawRows): void
  reject(error: unknown): void
}

class Connection {
  readonly group: Group
  readonly client: WireClient
  /** `exclusive`: reserved for one read. `closing`: takes no read, and closes after its last one. */
  state: 'ready' | 'exclusive' | 'closing' = 'ready'
  readonly inFlight = new Set<Read>()
  /** Time of the end of the last read, or of the start of the first one. */
  progressAt = performance.now()
  /** Time of the last response, or of the opening. */
  respondedAt = performance.now()

  constructor(group: Group, client: WireClient) {
    this.group = group
    this.client = client
  }
}

/** Connections for one purpose, and the reads that wait for them. */
class Group {
  readonly connections = new Set<Connection>()
  readonly waiting: Read[] = []
  readonly size: number
  /** Time without a completed read after which a connection is closed, in ms. */
  readonly silentMs: number
  opening = 0
  /** Time before which no connection opens while others serve the reads. */
  reopenAt = 0
  scheduled = false

  constructor(size: number, silentMs: number) {
    this.size = size
    this.silentMs = silentMs
  }

  isUsable(): boolean {
    return [...this.connections].some(({ state }) => state !== 'closing')
  }
}

/** All connections to one server. Each carries several reads in flight (the pipeline mode of pg). */
export class Connections {
  readonly #options: ConnectionsOptions
  readonly #createSocket = createSockets()
  readonly #depth: number
  readonly #timer: NodeJS.Timeout
  readonly #reads: Group
  /** The connection that is reserved for health checks and metrics. */
  readonly #probes = new Group(1, PROBE_MS)
  /** URLs of the servers that may be used; the first one is in use. */
  #urls: string[]
  /** The server in use, if the URL names several hosts. */
  readonly #primary = new NewestPrimary()
  #search: Promise<void> | undefined
  readonly #comparison: NodeJS.Timeout | undefined
  #closing = false

  /** @param silentMs time without a completed read after which the server counts as down */
  constructor(options: ConnectionsOptions, silentMs: number) {
    this.#options = options
    // PgBouncer 1.18 mixes up the messages of pipelined queries.
    this.#depth = options.pooler ? 1 : DEPTH
    this.#urls = serverUrls(options.url)
    this.#reads = new Group(options.size, silentMs)
    this.#timer = setInterval(this.#check, CHECK_MS).unref()
    const compare = () => this.#failOver(this.#urls.slice(1), true)
    if (this.#urls.length > 1) this.#comparison = setInterval(compare, COMPARE_EVERY_MS).unref()
  }

  /** @throws Unavailable if no response arrives before the deadline */
  read(statement: Statement, values: Parameter[], options: ReadOptions): Promise<RawRows> {
    return new Promise((resolve, reject) => {
      const group = options.probe ? this.#probes : this.#reads
      const state = { group, repeated: false, sentAt: 0, resolve, reject }
      this.#enqueue({ ...options, ...state, statement, values })
    })
  }

  probe(statement: Statement, values: Parameter[]): Promise<RawRows> {
    return this.read(statement, values, { due: performance.now() + PROBE_MS, probe: true })
  }

  /** Replaces all connections. @throws Error if no new one can be opened; the others then stay */
  async renew(): Promise<void> {
    const client = await this.#connect()
    client.end()
    for (const connection of this.#all()) this.#retire(connection)
  }

  count(): { connections: number; inUse: number } {
    const all = this.#all()
    return { connections: all.length, inUse: all.filter(({ inFlight }) => inFlight.size).length }
  }

  /** Rejects waiting reads. Those in flight may end. */
  close(): void {
    this.#closing = true
    clearInterval(this.#timer)
    clearInterval(this.#comparison)
    for (const connection of this.#all()) this.#retire(connection)
  }

  #all(): Connection[] {
    return [...this.#reads.connections, ...this.#probes.connections]
  }

  #enqueue(read: Read): void {
    read.group.waiting.push(read)
    this.#schedule(read.group)
  }

  #schedule(group: Group): void {
    if (group.scheduled || group.waiting.length === 0) return
    group.scheduled = true
    setImmediate(this.#dispatch, group)
  }

  /** Sends waiting reads in order, on an idle connection, a new one, or the least busy one. */
  readonly #dispatch = (group: Group): void => {
    group.scheduled = false
    const { waiting, connections } = group
    while (waiting.length > 0) {
      const connection = leastBusy(connections, this.#depth)
      const isBusy = connection === undefined || connection.inFlight.size > 0
      // Connections that are opening serve the reads that wait.
      if (isBusy && group.opening * this.#depth >= waiting.length) return
      if (isBusy && mayOpen(group)) {
        void this.#open(group)
        continue
      }
      if (connection === undefined || (isBusy && waiting[0]?.alone)) return
      const packet = takePacket(waiting, this.#depth - connection.inFlight.size)
      connection.client.sendTogether(() => {
        for (const read of packet) this.#start(connection, read, read.statement)
      })
    }
  }

  async #open(group: Group): Promise<void> {
    group.opening += 1
    const opened = await this.#connect().catch((error: Error) => error)
    group.opening -= 1
    if (opened instanceof Error) this.#retryLater(group, opened)
    else {
      const connection = new Connection(group, opened)
      group.connections.add(connection)
      group.reopenAt = 0
      opened.on('end', () => this.#retire(connection))
    }
    this.#dispatch(group)
  }

  /** Connects to the server in use. If that fails, connects to another server of the URL. */
  async #connect(again = true): Promise<WireClient> {
    if (this.#closing) throw new Error('the connections are closed')
    if (again && this.#urls.length > 1 && this.#primary.server === undefined)
      await this.#find(this.#urls)
    const [url = ''] = this.#urls
    try {
      const client = await connect({ ...this.#options, url }, this.#createSocket)
      if (url === this.#urls[0] && !this.#closing) return client
      client.end()
    } catch (error) {
      if (!again || this.#urls.length < 2) throw error
      if (url === this.#urls[0]) await this.#find(this.#urls.slice(1))
    }
    return this.#connect(false)
  }

  #find(urls: string[]): Promise<void> {
    this.#search ??= this.#failOver(urls).finally(() => {
      this.#search = undefined
    })
    return this.#search
  }

  /**
   * Uses the newest of other servers.
   * @param responds true if the server in use stays, unless a newer one replaced it
   * @throws ServerFailed if only superseded primaries respond
   */
  async #failOver(urls: string[], responds = false): Promise<void> {
    const [newest] = await findServers(this.#options, urls, COMPARE_MS).catch(() => [])
    const current = this.#primary.server
    if (newest === undefined || (responds && !(current && supersedes(newest, current)))) return
    const { url } = newest
    this.#primary.use(newest)
    if (url === this.#urls[0]) return
    this.#urls = [url, ...this.#urls.filter((each) => each !== url)]
    for (const connection of this.#all()) this.#abandon(connection)
    this.#options.onFailover?.(serverName(url))
  }

  /** Open connections serve the reads that wait. Without one, the reads fail. */
  #retryLater(group: Group, error: Error): void {
    group.reopenAt = performance.now() + REOPEN_MS
    if (group.opening > 0 || group.isUsable()) return
    const others = this.#reads.isUsable() ? this.#reads : undefined
    for (const read of group.waiting.splice(0)) {
      read.group = others ?? group
      if (others) this.#enqueue(read)
      else this.#fail(read, notConnected(error), isReset(error))
    }
  }

  #start(connection: Connection, read: Read, statement: Statement): void {
    const { client, group, inFlight } = connection
    const now = performance.now()
    if (read.due - now < FAIR_MS) {
      this.#fail(read, new ServerFailed('no connection to the database in time'))
      return
    }
    read.sentAt = now
    if (read.context) read.context.sentAt = now
    if (inFlight.size === 0) connection.progressAt = now
    inFlight.add(read)
    if (read.alone && connection.state === 'ready') connection.state = 'exclusive'
    const sent = this.#options.prepare ? statement : unnamed(statement)
    sendQuery(client, sent, read.values, new RawRows(read.reservation), (error, rows) => {
      // The reads of an abandoned connection have failed or moved to another one.
      if (!inFlight.delete(read)) return
      connection.progressAt = performance.now()
      if (connection.state === 'exclusive') connection.state = 'ready'
      if (error) this.#lose(connection, read, sent, error)
      else connection.respondedAt = connection.progressAt
      if (rows?.overLimit) read.reject(rejectionOf(read))
      else if (rows) read.resolve(rows)
      if (connection.state === 'closing') this.#retire(connection)
      this.#schedule(group)
    })
  }

  /** Repeats a failed read, and closes its connection if that is unusable. */
  #lose(connection: Connection, read: Read, statement: Statement, error: Error): void {
    const isLost = isLostPlan(error) && statement.name !== ''
    if (isLost || isBroken(error)) connection.state = 'closing'
    const suspectBefore = connection.progressAt - RESPONDED_MS
    if (isCut(error))
      for (const other of this.#all()) if (other.respondedAt < suspectBefore) this.#retire(other)
    if (isLost) this.#start(connection, read, unnamed(statement))
    else this.#fail(read, error)
  }

  #retire(connection: Connection): void {
    connection.state = 'closing'
    if (connection.inFlight.size > 0) return
    connection.group.connections.delete(connection)
    connection.client.end()
  }

  /** Closes a connection at once. PostgreSQL runs its reads in order: those behind a late one have not begun. */
  #abandon(connection: Connection, late?: Read): void {
    const error = new ServerSilent('the database stopped responding')
    const reads = [...connection.inFlight]
    connection.inFlight.clear()
    connection.client.destroy(error)
    this.#retire(connection)
    for (const read of reads) this.#fail(read, error, read !== late)
  }

  /** Repeats a read once after a connection failure. Repeating a read is safe. */
  #fail(read: Read, error: Error, again = isConnectionFailure(error)): void {
    if (read.repeated || !again || performance.now() >= read.due) {
      read.reject(asUnavailable(error))
      return
    }
    read.repeated = true
    // A read that was sent may have broken its connection.
    read.alone ||= read.sentAt > 0
    this.#enqueue(read)
  }

  readonly #check = (): void => {
    const now = performance.now()
    for (const connection of this.#all()) this.#checkConnection(connection, now)
    for (const group of [this.#reads, this.#probes]) {
      for (const read of group.waiting.filter(({ due }) => due <= now)) {
        group.waiting.splice(group.waiting.indexOf(read), 1)
        this.#fail(read, notConnected(undefined))
      }
      this.#schedule(group)
    }
  }

  /** Rejects overdue reads. Closes a connection that is silent or idle. */
  #checkConnection(connection: Connection, now: number): void {
    const { group, inFlight, progressAt } = connection
    const [oldest] = inFlight
    if (oldest === undefined) {
      if (now - progressAt >= IDLE_MS) this.#retire(connection)
      return
    }
    // A server that responded after the oldest read was sent is slow, not down.
    const Failure = progressAt > oldest.sentAt ? Unavailable : ServerSilent
    for (const read of inFlight)
      if (read.due <= now) read.reject(new Failure('the database stopped responding'))
    if (now - progressAt < group.silentMs) return
    this.#abandon(connection, oldest)
    if (group === this.#probes) return
    // Connections without a response since then may be dead as well.
    for (const other of this.#all())
      if (now - other.respondedAt > group.silentMs / 2) this.#abandon(other)
  }
}

const notConnected = (cause: unknown) =>
  new ServerFailed('no connection to the database', { cause })

function mayOpen(group: Group): boolean {
  const { connections, opening, size, reopenAt } = group
  if (connections.size + opening >= size) return false
  return performance.now() >= reopenAt || (opening === 0 && !group.isUsable())
}

function leastBusy(connections: Iterable<Connection>, depth: number): Connection | undefined {
  let best: Connection | undefined
  const stalled = performance.now() - STALLED_MS
  for (const connection of connections) {
    const { size } = connection.inFlight
    if (connection.state !== 'ready' || size >= depth) continue
    if (size === 0) return connection
    if (connection.progressAt < stalled) continue
    if (best === undefined || size < best.inFlight.size) best = connection
  }
  return best
}

/** Takes the next reads: a large one alone, or several small ones. */
function takePacket(waiting: Read[], depth: number): Read[] {
  const end = waiting.findIndex(({ alone }) => alone)
  const count = end < 0 ? waiting.length : Math.max(1, end)
  return waiting.splice(0, Math.min(count, depth))
}

function rejectionOf({ reservation }: Read): Unavailable {
  if (reservation?.ended) return new Unavailable('the client is gone')
  if (reservation?.tooLarge) return new ResponseTooLarge(reservation.tooLarge === 'never')
  return new Unavailable('responses fill the memory')
}
