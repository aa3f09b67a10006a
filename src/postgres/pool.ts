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
import { LockBreaker } from './lock-breaker.ts'
import { Read } from './read.ts'
import { ReadQueue } from './read-queue.ts'
import type { Reader } from './reader.ts'
import { Session } from './session.ts'
import { type Parameter, type Statement, unnamed } from './statements.ts'
import type { WireClient } from './wire/client.ts'
import type { RawRows } from './wire/query.ts'

export interface PoolOptions {
  /** Maximum number of sessions. */
  size: number
  /** True if each read has a session alone, which is closed if its client leaves. */
  isLarge?: boolean
  /** Maximum wait for a session, counted from the start of the request, in ms. */
  waitMs: number
  /** Time without a completed read after which a session is closed, in ms. */
  silentMs: number
  /** True behind PgBouncer in transaction mode. */
  pooler: boolean
  /** False for a client of a server that is no longer in use. */
  isInUse?: (client: WireClient) => boolean
}

/** Maximum number of reads in flight on a session: PostgreSQL runs them one after the other. */
const DEPTH = 8
/**
 * Average number of reads in flight on a session. More would only wait in PostgreSQL's sockets, where the order of the apps is
 * not kept: with 2, the p99 of a daily page is a tenth higher or more (docs/decisions/experiments.md).
 */
const READS_PER_SESSION = 1.5
/** Interval of the checks of sessions and of waiting reads, in ms. */
const CHECK_MS = 100
/** Time after a refused connection before the next attempt, while other sessions are open, in ms. */
const REOPEN_MS = 1_000

/** Sessions of one server for one class of reads. The queue says which read is next, and the breaker which may not run. */
export class Pool {
  readonly #options: PoolOptions
  readonly #connect: () => Promise<WireClient>
  readonly #depth: number
  readonly #timer: NodeJS.Timeout
  readonly #sessions = new Set<Session>()
  readonly #queue: ReadQueue
  readonly #breaker = new LockBreaker()
  /** Reads that go before the queue: probes, and those that are repeated or try a locked table. */
  readonly #urgent: Read[] = []
  #respondedAt = Number.NEGATIVE_INFINITY
  #opening = 0
  /** Time before which no session opens while others serve the reads. */
  #reopenAt = 0
  #isScheduled = false
  /** False behind a pooler that does not keep prepared statements. */
  #prepares = true

  constructor(options: PoolOptions, connect: () => Promise<WireClient>) {
    const { size, isLarge = false, waitMs, pooler } = options
    this.#options = options
    this.#connect = connect
    // PgBouncer 1.18 mixes up the messages of pipelined reads.
    this.#depth = isLarge || pooler ? 1 : DEPTH
    this.#queue = new ReadQueue({
      sessions: size,
      readsPerSession: Math.min(this.#depth, READS_PER_SESSION),
      countsTime: isLarge,
      continuedFirstMs: waitMs / 2,
    })
    this.#timer = setInterval(this.#check, CHECK_MS).unref()
  }

  /** Time of the last response of the server to a read, also of an error. */
  get respondedAt(): number {
    return this.#respondedAt
  }

  /** Numbers of open connections, of those in use, and of reads that wait. */
  state(): { connections: number; inUse: number; waiting: number } {
    const used = [...this.#sessions].filter(({ size }) => size > 0)
    return {
      connections: this.#sessions.size,
      inUse: used.length,
      waiting: this.#queue.waiting,
    }
  }

  /**
   * Runs a SELECT of a request, in the order of the queue. All its reads share a deadline.
   * @throws Unavailable if no response arrives in time
   */
  read(statement: Statement, values: Parameter[], reader: Reader): Promise<RawRows> {
    const { waitMs, silentMs } = this.#options
    const read = new Read(statement, values, waitMs + silentMs, reader)
    const refusal = this.#refusal(read)
    if (refusal) {
      read.end(refusal)
    } else {
      this.#queue.add(read)
      this.#schedule()
    }
    return read.promise
  }

  /** Runs a SELECT ahead of all requests. @throws Unavailable if no response arrives in this time */
  probe(statement: Statement, values: Parameter[], ms: number): Promise<RawRows> {
    const read = new Read(statement, values, ms, undefined)
    this.#urgent.push(read)
    this.#schedule()
    return read.promise
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
  #refusal(read: Read): Error | undefined {
    const { reader, statement } = read
    if (reader === undefined) return undefined
    const late = this.#lateness(read)
    if (late || statement.singleRow) return late
    return reader.memory.refusal(reader.expectedBytes)
  }

  /** Returns an error if nobody waits for a read, or if it has waited too long. */
  #lateness({ isContinued, isUnwanted, reader }: Read): Unavailable | undefined {
    if (isUnwanted) return new Unavailable('the client is gone')
    const { startedAt = Number.POSITIVE_INFINITY } = reader ?? {}
    if (isContinued || performance.now() < startedAt + this.#options.waitMs) return undefined
    return new Unavailable('no database connection became free in time')
  }

  #schedule(): void {
    if (this.#isScheduled || this.#queue.waiting + this.#urgent.length === 0) return
    this.#isScheduled = true
    setImmediate(this.#dispatch)
  }

  /** Sends waiting reads on an idle session, a new one, or the least busy one. */
  readonly #dispatch = (): void => {
    this.#isScheduled = false
    for (;;) {
      const waiting = this.#queue.waiting + this.#urgent.length
      if (waiting === 0) return
      const session = this.#leastBusy()
      if (session === undefined || session.size > 0) {
        // Sessions that are opening serve the reads that wait.
        if (this.#opening * this.#depth >= waiting) return
        const mayOpen = performance.now() >= this.#reopenAt || this.#needsSession()
        if (this.#sessions.size + this.#opening < this.#options.size && mayOpen) {
          void this.#open()
          continue
        }
      }
      if (session === undefined) return
      const { size } = session
      // One packet saves a third of the processor time of PostgreSQL.
      session.client.sendTogether(this.#fill, session)
      if (session.size === size) return
    }
  }

  readonly #fill = (session: Session): void => {
    while (session.hasRoom) {
      const read = this.#nextRead(session)
      if (read === undefined) return
      this.#start(session, read, read.statement)
    }
  }

  /** Chooses the next read for a session. Reads that may not run end here. */
  #nextRead(session: Session): Read | undefined {
    const [urgent] = this.#urgent
    if (urgent !== undefined) {
      if (urgent.isExclusive && session.size > 0) return undefined
      return this.#urgent.shift()
    }
    for (let read = this.#queue.take(); read !== undefined; read = this.#queue.take()) {
      const refusal = this.#refusal(read) ?? this.#breaker.refuseOrTry(read)
      if (refusal) {
        this.#queue.refused(read)
        read.end(refusal)
        continue
      }
      if (!read.isExclusive || session.size === 0) return read
      // It waits for the lock on a session alone.
      this.#urgent.push(read)
      return undefined
    }
    return undefined
  }

  /** True if no session is open or opening. */
  #needsSession(): boolean {
    return this.#opening === 0 && [...this.#sessions].every(({ isClosing }) => isClosing)
  }

  #leastBusy(): Session | undefined {
    let best: Session | undefined
    for (const session of this.#sessions) {
      if (!session.hasRoom || session.isStalled) continue
      if (session.size === 0) return session
      if (best === undefined || session.size < best.size) best = session
    }
    return best
  }

  async #open(): Promise<void> {
    const { isInUse = () => true } = this.#options
    this.#opening += 1
    try {
      const client = await this.#connect().finally(() => {
        this.#opening -= 1
      })
      if (client.isEnded) throw lostWhileOpening()
      if (isInUse(client)) this.#add(client)
      // A failover has ended meanwhile: its reads would be those of the old server.
      else client.end()
    } catch (error) {
      this.#reopenAt = performance.now() + REOPEN_MS
      // Open sessions serve the reads that wait. Without one, the reads fail.
      if (this.#needsSession())
        for (const read of [...this.#urgent.splice(0), ...this.#queue.takeIf(() => true)])
          this.#fail(read, notConnected(error), isReset(error))
    }
    this.#dispatch()
  }

  #add(client: WireClient): void {
    const session = new Session(client, this.#depth)
    this.#sessions.add(session)
    this.#reopenAt = 0
    client.on('end', () => this.#retire(session))
  }

  #start(session: Session, read: Read, statement: Statement): void {
    const sent = this.#prepares ? statement : unnamed(statement)
    this.#queue.started(read)
    session.start(read, sent, (_read, ms, error, rows) => {
      this.#queue.ended(read, ms)
      if (!error || !isBroken(error)) this.#respondedAt = performance.now()
      if (!read.statement.singleRow)
        read.reader?.measure(performance.now() - read.sentAt, error ? undefined : rows)
      if (error) {
        this.#lose(session, read, sent, error)
      } else {
        this.#breaker.succeeded(read)
        read.end(rows.error, rows)
      }
      if (session.isClosing) this.#retire(session)
      this.#schedule()
    })
  }

  /** Repeats a failed read, and closes its session if that is unusable. */
  #lose(session: Session, read: Read, statement: Statement, error: Error): void {
    const isLost = hasState(error, SqlState.lostPlan) && statement.name !== ''
    if (isLost || isBroken(error)) session.drain()
    if (isCut(error)) this.#retireIdle()
    if (isLost && this.#options.pooler) this.#prepares = false
    if (isLost) this.#start(session, read, unnamed(statement))
    else this.#fail(read, error)
  }

  #retire(session: Session): void {
    if (session.retire()) this.#sessions.delete(session)
  }

  /** What cut or silenced one session may have cut the idle ones, too. Those in use report it themselves. */
  #retireIdle(): void {
    for (const session of this.#sessions) if (session.size === 0) this.#retire(session)
  }

  /** Closes a session at once. PostgreSQL runs its reads in order: those behind a late one have not begun. */
  #abandon(session: Session, late?: Read): void {
    const { error, reads } = session.abandon()
    this.#retire(session)
    const ms = performance.now() - session.progressAt
    for (const read of reads) {
      this.#queue.ended(read, read === reads[0] ? ms : 0)
      this.#fail(read, error, read !== late)
    }
  }

  /** Repeats a read once after a failure of its session. Repeating a read is safe. */
  #fail(read: Read, error: Error, again = isConnectionFailure(error)): void {
    const isFinal = read.isRepeated || read.isUnwanted || performance.now() >= read.dueAt
    if (isFinal || !again) {
      this.#breaker.failed(read, error)
      read.end(asUnavailable(error))
      return
    }
    read.isRepeated = true
    // A read that was sent may have broken its session.
    read.isExclusive ||= read.sentAt > 0
    this.#urgent.push(read)
    this.#schedule()
  }

  readonly #check = (): void => {
    for (const session of this.#sessions) if (session.size > 0) this.#checkSession(session)
    const late = this.#queue.takeIf((read) => this.#lateness(read) !== undefined)
    for (const read of late) read.end(this.#lateness(read))
    for (const read of this.#urgent.splice(0)) {
      const isOver = read.isUnwanted || read.dueAt <= performance.now()
      if (isOver) this.#fail(read, notConnected(undefined))
      else this.#urgent.push(read)
    }
    this.#schedule()
  }

  /** Ends the overdue reads of a session, and closes it if the server is silent or a large read is unwanted. */
  #checkSession(session: Session): void {
    const now = performance.now()
    const { silentMs, isLarge } = this.#options
    const { oldest, progressAt } = session
    if (oldest === undefined) return
    // A server that responded after the oldest read was sent is slow, not down.
    const Failure = progressAt > oldest.sentAt ? Unavailable : ServerFailed
    for (const read of session.reads)
      if (read.dueAt <= now) read.end(new Failure('the database stopped responding'))
    if (isLarge && oldest.isUnwanted) this.#abandon(session)
    if (now - progressAt < silentMs) return
    this.#abandon(session, oldest)
    this.#retireIdle()
  }
}

/** As an error of the network: the next attempt may succeed. */
const lostWhileOpening = () =>
  Object.assign(new Error('the connection ended while it opened'), { code: 'ECONNRESET' })

const notConnected = (cause: unknown) =>
  new ServerFailed('no connection to the database', { cause })
