import { FairQueue, mayTake, Tenant } from '../limits/tenants.ts'
import { Unavailable } from '../limits/unavailable.ts'
import {
  asUnavailable,
  hasState,
  isBroken,
  isConnectionFailure,
  isCut,
  isReset,
  ServerFailed,
  SqlState,
} from './failures.ts'
import type { Reader } from './reader.ts'
import { type Parameter, type Statement, unnamed } from './statements.ts'
import type { WireClient } from './wire/client.ts'
import { RawQuery, RawRows } from './wire/query.ts'

export interface PoolOptions {
  /** Maximum number of sessions. */
  size: number
  /** Pool for the large reads of this one. */
  large?: Pool
  /** True if each read has a session alone, which is closed if its client leaves. */
  isLarge?: boolean
  /** Maximum wait for a session, counted from the start of the request, in ms. */
  waitMs: number
  /** Time without a completed read after which a session is closed, in ms. */
  silentMs: number
  /** True behind PgBouncer in transaction mode. */
  pooler: boolean
}

/** Maximum number of reads in flight on a session: PostgreSQL runs them one after the other. */
const DEPTH = 8
/** Average number of reads in flight on a session. More would only wait in PostgreSQL's sockets, out of turn. */
const READS_PER_SESSION = 2
/** Most reads in flight of callers whose app is unknown. A flood of unknown tokens leaves the others to known apps. */
const UNKNOWN_READS = 4
/** Time without a completed read after which a session gets no further reads, in ms. */
const STALLED_MS = 250
/** Rows from which on a response shows how long the rows of a tenant are. */
const MEASURED_ROWS = 100
/** Interval of the checks of sessions and of waiting reads, in ms. */
const CHECK_MS = 100
/** Time after a refused connection before the next attempt, while other sessions are open, in ms. */
const REOPEN_MS = 1_000

interface Read {
  statement: Statement
  values: Parameter[]
  reader: Reader | undefined
  tenant: Tenant
  due: number
  /** True if no other read may share the session. */
  exclusive: boolean
  repeated: boolean
  ended: boolean
  askedAt: number
  sentAt: number
  resolve(rows: RawRows): void
  reject(error: unknown): void
}

const PROBES = new Tenant()

interface Session {
  client: WireClient
  /** True if it takes no further read, and closes after its last one. */
  closing: boolean
  /** Reads in flight, in the order in which PostgreSQL runs them. */
  reads: Set<Read>
  /** Time of the end of the last read, or of the start of the first one. */
  progressAt: number
}

/** Sessions of one server for one class of reads, and the reads that wait for them in turns of their tenants. */
export class Pool {
  /** Time of the last response of the server to a read, also of an error. */
  respondedAt = Number.NEGATIVE_INFINITY
  readonly #options: PoolOptions
  readonly #connect: () => Promise<WireClient>
  readonly #depth: number
  readonly #timer: NodeJS.Timeout
  readonly #sessions = new Set<Session>()
  readonly #inFlight = new Set<Read>()
  readonly #waiting = new FairQueue<Read>()
  /** Reads that wait for no turn: probes, and those that are repeated or try a locked table. */
  readonly #urgent: Read[] = []
  /** Errors of the statements whose tables were locked at their last read. */
  readonly #locked = new Map<string, unknown>()
  #triedAt = Number.NEGATIVE_INFINITY
  #opening = 0
  /** Time before which no session opens while others serve the reads. */
  #reopenAt = 0
  #isScheduled = false
  /** False behind a pooler that does not keep prepared statements. */
  #prepares = true

  constructor(options: PoolOptions, connect: () => Promise<WireClient>) {
    this.#options = options
    this.#connect = connect
    // PgBouncer 1.18 mixes up the messages of pipelined reads.
    this.#depth = options.isLarge || options.pooler ? 1 : DEPTH
    this.#timer = setInterval(this.#check, CHECK_MS).unref()
  }

  /** Numbers of open connections, of those in use, and of reads that wait, also for large reads. */
  state(): { connections: number; inUse: number; waiting: number } {
    const large = this.#options.large?.state()
    const used = [...this.#sessions].filter(({ reads }) => reads.size > 0)
    return {
      connections: this.#sessions.size + (large?.connections ?? 0),
      inUse: used.length + (large?.inUse ?? 0),
      waiting: this.#waiting.length + (large?.waiting ?? 0),
    }
  }

  /**
   * Runs a SELECT in its turn. All reads of a request share a deadline.
   * @param reader undefined for a probe, which waits for no turn
   * @param ms until its deadline, from the start of the request
   * @throws Unavailable if no response arrives in time
   */
  read(
    statement: Statement,
    values: Parameter[],
    reader?: Reader,
    ms = this.#options.waitMs + this.#options.silentMs,
  ): Promise<RawRows> {
    const { large } = this.#options
    if (large && reader?.isLarge && !statement.singleRow)
      return large.read(statement, values, reader)
    const { promise, resolve, reject } = Promise.withResolvers<RawRows>()
    const askedAt = performance.now()
    const read: Read = {
      statement,
      values,
      reader,
      tenant: reader?.tenant ?? PROBES,
      due: (reader?.startedAt ?? askedAt) + ms,
      exclusive: false,
      repeated: false,
      ended: false,
      askedAt,
      sentAt: 0,
      resolve,
      reject,
    }
    const refusal = this.#refusal(read)
    if (refusal) this.#end(read, refusal)
    else if (reader) this.#waiting.add(read)
    else this.#urgent.push(read)
    this.#schedule()
    return promise
  }

  /** Replaces all sessions. Their reads may end. */
  renew(): void {
    for (const session of this.#sessions) this.#retire(session)
  }

  /** Replaces all sessions at once, because another server is used from now on. */
  abandon(): void {
    for (const session of this.#sessions) this.#abandon(session)
  }

  close(): void {
    clearInterval(this.#timer)
    this.renew()
  }

  /** Returns an error if nobody waits for a read, if it has waited too long, or if its rows have no room. */
  #refusal({ reader, statement }: Read, needsRoom = !statement.singleRow): Error | undefined {
    if (reader === undefined) return undefined
    if (reader.memory.isClosed) return new Unavailable('the client is gone')
    if (performance.now() >= reader.startedAt + this.#options.waitMs)
      return new Unavailable('no database connection became free in time')
    if (!needsRoom) return undefined
    return reader.memory.refusal(reader.expectedBytes)
  }

  /** Ends a read. One that was overdue may end again in PostgreSQL. */
  #end(read: Read, error: unknown, rows?: RawRows): void {
    if (read.ended) return
    read.ended = true
    read.reader?.endRead(read.statement.title, read.askedAt, read.sentAt, error)
    if (rows && !error) read.resolve(rows)
    else read.reject(error)
  }

  #schedule(): void {
    if (this.#isScheduled || this.#waiting.length + this.#urgent.length === 0) return
    this.#isScheduled = true
    setImmediate(this.#dispatch)
  }

  /** Sends waiting reads on an idle session, a new one, or the least busy one. */
  readonly #dispatch = (): void => {
    this.#isScheduled = false
    for (;;) {
      const waiting = this.#waiting.length + this.#urgent.length
      if (waiting === 0) return
      const session = this.#leastBusy()
      if (session === undefined || session.reads.size > 0) {
        // Sessions that are opening serve the reads that wait.
        if (this.#opening * this.#depth >= waiting) return
        const hasTurn = performance.now() >= this.#reopenAt || this.#needsSession()
        if (this.#sessions.size + this.#opening < this.#options.size && hasTurn) {
          void this.#open()
          continue
        }
      }
      if (session === undefined) return
      const { size } = session.reads
      // One packet saves a third of the processor time of PostgreSQL.
      session.client.sendTogether(this.#fill, session)
      if (session.reads.size === size) return
    }
  }

  readonly #fill = (session: Session): void => {
    const { reads } = session
    while (reads.size < this.#depth) {
      const [urgent] = this.#urgent
      if (urgent?.exclusive && reads.size > 0) return
      const read = this.#urgent.shift() ?? this.#waiting.take(this.#mayHaveMore)
      if (read === undefined) return
      const refusal = read === urgent ? undefined : this.#refusal(read)
      if (refusal) this.#end(read, refusal)
      else if (read !== urgent && this.#locked.has(read.statement.name)) this.#tryLocked(read)
      else this.#start(session, read, read.statement)
      // tryLocked() may have added it to the urgent ones.
      if (read.exclusive && reads.size > 0) return
    }
  }

  /** True if a tenant may have one more read in flight. */
  readonly #mayHaveMore = (tenant: Tenant): boolean => {
    const { size } = this.#options
    const free = Math.min(this.#depth, READS_PER_SESSION) * size - this.#inFlight.size
    if (free <= 0) return false
    const inFlight = [...this.#inFlight]
    if (tenant.appId === undefined) {
      const unknown = inFlight.filter((read) => read.reader && read.tenant.appId === undefined)
      return unknown.length < Math.min(UNKNOWN_READS, size)
    }
    const own = inFlight.filter((read) => read.tenant === tenant)
    // Slow reads of one app leave half of the sessions to the others.
    const stalled = performance.now() - STALLED_MS
    const slow = own.filter(({ sentAt }) => sentAt < stalled)
    return slow.length <= size / 2 && mayTake(1, own.length, free)
  }

  /** Rejects a read of a locked table at once, except one at a time: it waits for the lock on a session alone. */
  #tryLocked(read: Read): void {
    const now = performance.now()
    if (now - this.#triedAt < this.#options.silentMs) {
      const cause = this.#locked.get(read.statement.name)
      this.#end(read, new Unavailable('a table of the statement is locked', { cause }))
      return
    }
    this.#triedAt = now
    read.exclusive = true
    this.#urgent.push(read)
  }

  /** True if no session is open or opening. */
  #needsSession(): boolean {
    return this.#opening === 0 && [...this.#sessions].every(({ closing }) => closing)
  }

  #leastBusy(): Session | undefined {
    let best: Session | undefined
    const stalled = performance.now() - STALLED_MS
    for (const session of this.#sessions) {
      const { closing, reads } = session
      const [first] = reads
      if (closing || first?.exclusive || reads.size >= this.#depth) continue
      if (first === undefined) return session
      if (session.progressAt < stalled) continue
      if (best === undefined || reads.size < best.reads.size) best = session
    }
    return best
  }

  async #open(): Promise<void> {
    this.#opening += 1
    try {
      const client = await this.#connect()
      this.#opening -= 1
      const progressAt = performance.now()
      const session: Session = { client, closing: false, reads: new Set(), progressAt }
      this.#sessions.add(session)
      this.#reopenAt = 0
      client.on('end', () => this.#retire(session))
    } catch (error) {
      this.#reopenAt = performance.now() + REOPEN_MS
      this.#opening -= 1
      // Open sessions serve the reads that wait. Without one, the reads fail.
      if (this.#needsSession())
        for (const read of [...this.#urgent.splice(0), ...this.#waiting.takeIf(() => true)])
          this.#fail(read, notConnected(error), isReset(error))
    }
    this.#dispatch()
  }

  #start(session: Session, read: Read, statement: Statement): void {
    const { client, reads } = session
    const { reader, tenant, values } = read
    read.sentAt = performance.now()
    if (reads.size === 0) session.progressAt = read.sentAt
    reads.add(read)
    this.#inFlight.add(read)
    const sent = this.#prepares ? statement : unnamed(statement)
    const rows = new RawRows(statement.singleRow ? undefined : reader?.memory)
    const query = new RawQuery(sent, values, rows, (error) => {
      // The reads of an abandoned session have failed or moved to another one.
      if (!reads.delete(read)) return
      this.#inFlight.delete(read)
      session.progressAt = performance.now()
      const isMeasured = tenant.appId !== undefined && !statement.singleRow
      if (isMeasured && reader?.isDeep)
        tenant.deepMs = Math.max(session.progressAt - read.sentAt, 0.8 * tenant.deepMs)
      if (error) {
        if (!isBroken(error)) this.respondedAt = session.progressAt
        this.#lose(session, read, sent, error)
      } else {
        this.respondedAt = session.progressAt
        if (isMeasured && rows.count >= MEASURED_ROWS)
          tenant.rowBytes = rows.byteLength / rows.count
        if (this.#locked.delete(statement.name)) this.#triedAt = Number.NEGATIVE_INFINITY
        this.#end(read, rows.error, rows)
      }
      if (session.closing) this.#retire(session)
      this.#schedule()
    })
    client.query(query)
  }

  /** Repeats a failed read, and closes its session if that is unusable. */
  #lose(session: Session, read: Read, statement: Statement, error: Error): void {
    const isLost = hasState(error, SqlState.lostPlan) && statement.name !== ''
    if (isLost || isBroken(error)) session.closing = true
    if (isCut(error)) this.#retireIdle()
    if (isLost && this.#options.pooler) this.#prepares = false
    if (isLost) this.#start(session, read, unnamed(statement))
    else this.#fail(read, error)
  }

  #retire(session: Session): void {
    session.closing = true
    if (session.reads.size > 0) return
    this.#sessions.delete(session)
    session.client.end()
  }

  /** What cut or silenced one session may have cut the idle ones, too. Those in use report it themselves. */
  #retireIdle(): void {
    for (const session of this.#sessions) if (session.reads.size === 0) this.#retire(session)
  }

  /** Closes a session at once. PostgreSQL runs its reads in order: those behind a late one have not begun. */
  #abandon(session: Session, late?: Read): void {
    const error = new ServerFailed('the database stopped responding')
    const reads = [...session.reads]
    session.reads.clear()
    session.client.destroy(error)
    this.#retire(session)
    for (const read of reads) {
      this.#inFlight.delete(read)
      this.#fail(read, error, read !== late)
    }
  }

  /** Repeats a read once after a failure of its session. Repeating a read is safe. */
  #fail(read: Read, error: Error, again = isConnectionFailure(error)): void {
    if (hasState(error, SqlState.locked)) this.#locked.set(read.statement.name, error)
    if (read.exclusive) this.#triedAt = Number.NEGATIVE_INFINITY
    if (read.repeated || !again || read.reader?.memory.isClosed || performance.now() >= read.due) {
      this.#end(read, asUnavailable(error))
      return
    }
    read.repeated = true
    // A read that was sent may have broken its session.
    read.exclusive ||= read.sentAt > 0
    this.#urgent.push(read)
    this.#schedule()
  }

  readonly #check = (): void => {
    const now = performance.now()
    const { silentMs, isLarge } = this.#options
    for (const session of this.#sessions) {
      const { reads, progressAt } = session
      const [oldest] = reads
      if (oldest === undefined) continue
      if (isLarge && oldest.reader?.memory.isClosed) this.#abandon(session)
      // A server that responded after the oldest read was sent is slow, not down.
      const Failure = progressAt > oldest.sentAt ? Unavailable : ServerFailed
      for (const read of reads)
        if (read.due <= now) this.#end(read, new Failure('the database stopped responding'))
      if (now - progressAt < silentMs) continue
      this.#abandon(session, oldest)
      this.#retireIdle()
    }
    this.#waiting.takeIf((read) => {
      const refusal = this.#refusal(read, false)
      if (refusal) this.#end(read, refusal)
      return refusal !== undefined
    })
    for (const read of this.#urgent.splice(0))
      if (read.due <= now) this.#fail(read, notConnected(undefined))
      else this.#urgent.push(read)
    this.#schedule()
  }
}

const notConnected = (cause: unknown) =>
  new ServerFailed('no connection to the database', { cause })
