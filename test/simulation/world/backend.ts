import type { Host, Session } from './host.ts'
import type { Link, Peer } from './link.ts'
import { type Incoming, MessageWriter, type ServerError } from './messages.ts'
import { knows, type Plan, planOf, readIdOf } from './statements.ts'

/** PostgreSQL sends what it has when this many bytes wait. */
const SEND_BUFFER = 8_192

interface Prepared {
  text: string
  /** Changes of the schema before it. */
  schemaChanges: number
}

interface Bound {
  text: string
  values: (string | null)[]
}

/** The tables and settings that a query of the start of a connection asks for. */
const STARTS: { pattern: RegExp; columns: { name: string; type: number }[]; tag: string }[] = [
  { pattern: /from pg_extension/, columns: [], tag: 'SELECT 0' },
  { pattern: /^\s*set /, columns: [], tag: 'SET' },
  { pattern: /set_config/, columns: [{ name: 'set_config', type: 25 }], tag: 'SELECT 0' },
]

/** One session of a server. It works on one message after the other. */
export class Backend implements Peer, Session {
  readonly host: Host
  readonly link: Link
  readonly id: number
  /** Reads that it has begun, by their ids. */
  readonly hasRun: number[] = []
  /** True if the service uses it for large reads. */
  checksClient = false
  /** Time at which it became idle. */
  idleSince: number
  readonly #writer = new MessageWriter()
  readonly #inbox: Incoming[] = []
  readonly #prepared = new Map<string, Prepared>()
  #settings: { statementMs: number; lockMs: number } = { statementMs: 0, lockMs: 0 }
  #bound: Bound | undefined
  /** Of the read that it works on: `rows`, or an SQLSTATE. */
  #result = 'rows'
  readId: number | undefined
  #isBusy = false
  #isClosed = false
  /** True after an error, until the next Sync. */
  #isSkipping = false
  #hasClientLeft = false
  #transactions = 0

  constructor(host: Host, link: Link) {
    this.host = host
    this.link = link
    this.id = link.id
    this.idleSince = host.world.now
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  get isIdle(): boolean {
    return !this.#isBusy && this.#inbox.length === 0
  }

  receive(messages: Incoming[]): void {
    if (this.#isClosed) return
    this.#inbox.push(...messages)
    this.host.whenRunning(() => this.#work())
  }

  clientLeft(): void {
    this.#hasClientLeft = true
    if (!this.#isBusy) this.#close()
    // client_connection_check_interval
    else if (this.checksClient) this.#after(1_000, () => this.#close())
  }

  /** Reports an error that ends the session. */
  terminate(code: string, message: string): void {
    if (this.#isClosed) return
    this.#writer.error({ severity: 'FATAL', code, message })
    this.link.isTerminated = true
    // The client takes it for the answer of the first read that is in flight when it arrives.
    const arrived = () => {
      const [first] = this.link.inFlight
      if (first !== undefined) this.link.answered(first, code)
    }
    this.link.toClient(this.#writer.take(), arrived, 0)
    this.link.end()
    this.#close()
  }

  /** Ends without a word. */
  vanish(how: 'end' | 'reset'): void {
    if (this.#isClosed) return
    if (how === 'reset') this.link.reset()
    else this.link.end()
    this.#close()
  }

  reportRole(): void {
    this.#writer.parameterStatus('in_hot_standby', this.host.isStandby ? 'on' : 'off')
    if (!this.#isBusy) this.#send()
  }

  #close(): void {
    this.#isClosed = true
    this.host.backends.delete(this)
  }

  #after(ms: number, action: () => void): void {
    this.host.world.clock.after(ms, () =>
      this.host.whenRunning(() => {
        if (!this.#isClosed) action()
      }),
    )
  }

  /** Sends the end of a transaction. */
  #sendAnswer(): void {
    const { readId } = this
    const result = this.#result
    this.#result = 'rows'
    this.readId = undefined
    this.link.toClient(this.#writer.take(), () => {
      if (readId !== undefined) this.link.answered(readId, result)
    })
  }

  #send(): void {
    if (this.#writer.length > 0) this.link.toClient(this.#writer.take())
  }

  #work(): void {
    while (!this.#isBusy && !this.#isClosed) {
      const message = this.#inbox.shift()
      if (message === undefined) break
      this.#handle(message)
      if (this.#writer.length > SEND_BUFFER) this.#send()
    }
    if (!this.#isBusy) this.idleSince = this.host.world.now
  }

  #handle(message: Incoming): void {
    switch (message.type) {
      case 'startup':
        this.#start(message.parameters)
        return
      case 'cancel':
      case 'terminate':
        this.link.end()
        this.#close()
        return
      case 'unknown':
        this.host.world.violate('the server gets only messages that it knows', `${message.code}`)
        this.#close()
        return
      case 'sync':
        this.#isSkipping = false
        this.#transactions += 1
        this.#writer.readyForQuery()
        this.#sendAnswer()
        return
      case 'query':
        this.#query(message.text)
        return
      default:
        // Also of a read that PostgreSQL skips after an error of its Parse.
        if (message.type === 'bind') this.readId = readIdOf(message)
        if (!this.#isSkipping) this.#extended(message)
    }
  }

  #start({ user = '', options = '' }: Record<string, string>): void {
    const { host } = this
    const refuse = (code: string, message: string) => this.terminate(code, message)
    if (host.isStarting) {
      refuse('57P03', 'the database system is starting up')
      return
    }
    if (user !== host.user) {
      refuse('28000', `role "${user}" is not permitted to log in`)
      return
    }
    if (host.backends.size > host.maxBackends) {
      refuse('53300', 'sorry, too many clients already')
      return
    }
    const setting = (name: 'statement_timeout' | 'lock_timeout') =>
      Number(new RegExp(`-c ${name}=(\\d+)`).exec(options)?.[1] ?? host.world.options[name])
    this.#settings = { statementMs: setting('statement_timeout'), lockMs: setting('lock_timeout') }
    this.#writer.authenticationOk()
    this.#writer.parameterStatus('in_hot_standby', host.isStandby ? 'on' : 'off')
    this.#writer.parameterStatus('client_encoding', 'UTF8')
    this.#writer.backendKeyData(this.id, this.id)
    this.#writer.readyForQuery()
    this.#send()
  }

  /** A query of the start of a connection, in one message. */
  #query(text: string): void {
    const { host } = this
    if (text.includes('client_connection_check_interval')) {
      this.checksClient = true
      this.link.isLarge = true
    }
    this.#busy(1, () => {
      if (text.includes('pg_control_system')) this.#history()
      else {
        const start = STARTS.find(({ pattern }) => pattern.test(text))
        if (start === undefined)
          host.world.violate('the server gets only queries that it knows', text)
        if (start && start.columns.length > 0) this.#writer.rowDescription(start.columns)
        this.#writer.commandComplete(start?.tag ?? '')
      }
      this.#writer.readyForQuery()
      this.#send()
    })
  }

  #history(): void {
    const { isStandby, timeline, startedAt, options } = this.host
    if (!options.readsHistory) {
      this.#writer.error({ severity: 'ERROR', code: '42501', message: 'permission denied' })
      return
    }
    this.#writer.rowDescription([
      { name: 'cluster', type: 25 },
      { name: 'started', type: 25 },
      { name: 'timeline', type: 23 },
    ])
    const started = `${this.host.name} ${startedAt}`
    this.#writer.dataRow(['7000000000000000001', started, String(isStandby ? 0 : timeline)])
    this.#writer.commandComplete('SELECT 1')
  }

  /** PgBouncer in transaction mode gives each transaction one of its connections. */
  get #plans(): Map<string, Prepared> {
    const { world, options } = this.host
    if (options.pooler !== 'forgets plans') return this.#prepared
    const which = Math.floor(3 * world.chance('pooler', this.id, this.#transactions))
    return world.pooledPlans(this.host.name, which)
  }

  #extended(message: Incoming): void {
    if (message.type === 'parse') this.#parse(message)
    else if (message.type === 'bind') this.#bind(message)
    else if (message.type === 'execute') this.#execute()
  }

  #parse({ name, text }: { name: string; text: string }): void {
    const { world, schemaChanges, parseError } = this.host
    if (parseError !== undefined) {
      this.#fail(parseError)
      return
    }
    if (!knows(text)) world.violate('the server gets only statements that it knows', text)
    if (name !== '' && this.#plans.has(name)) {
      this.#fail('42P05', `prepared statement "${name}" already exists`)
      return
    }
    this.#plans.set(name, { text, schemaChanges })
    this.#writer.parseComplete()
  }

  #bind({ name, values }: { name: string; values: (string | null)[] }): void {
    const prepared = this.#plans.get(name)
    if (prepared === undefined) {
      this.#fail('26000', `prepared statement "${name}" does not exist`)
      return
    }
    if (prepared.schemaChanges !== this.host.schemaChanges && name !== '') {
      this.#fail('0A000', 'cached plan must not change result type')
      return
    }
    this.#bound = { text: prepared.text, values }
    // Kinds of the read's own errors are the same whether PostgreSQL finds them at Parse or at Bind.
    const { failure } = this.#plan()
    if (failure?.at === 'bind' || failure?.at === 'parse') {
      this.#fail(failure.code)
      return
    }
    this.#writer.bindComplete()
  }

  /** What the bound statement does now. */
  #plan(): Plan {
    const { text = '', values = [] } = this.#bound ?? {}
    return planOf(text, values, this.host)
  }

  #execute(): void {
    const { host } = this
    const { world } = host
    const plan = this.#plan()
    const lockedMs = Math.max(0, (host.lockedUntil.get(plan.table ?? '') ?? 0) - world.now)
    const { lockMs, statementMs } = this.#settings
    if (plan.readId !== undefined) {
      this.hasRun.push(plan.readId)
      world.journal.record('runs', plan.readId, `${host.name} ${this.id}`)
    }
    if (lockedMs > lockMs) {
      this.#busy(lockMs, () => this.#fail('55P03', 'canceling statement due to lock timeout'))
      return
    }
    const ms = lockedMs + plan.ms * host.slowness
    if (ms > statementMs) {
      this.#busy(statementMs, () =>
        this.#fail('57014', 'canceling statement due to statement timeout'),
      )
      return
    }
    this.#busy(ms, () => this.#answer(this.#plan()))
  }

  /** Writes the rows of a statement. All are of the snapshot of its end. */
  #answer({ rows: rowsOf, failure, readId }: Plan): void {
    const rows = rowsOf()
    const { host } = this
    const { failures, world } = host
    if (failure?.at === 'execute') {
      this.#fail(failure.code)
      return
    }
    const isHit =
      failures && world.chance('failure', this.id, this.#transactions, world.now) < failures.rate
    if (isHit && failures.error.severity === 'FATAL') {
      this.terminate(failures.error.code, failures.error.message)
      return
    }
    const failsAt = failure?.at === 'row' || isHit ? Math.floor(rows.length / 2) : -1
    for (const [n, row] of rows.entries()) {
      if (n === failsAt) {
        this.#fail(failure?.code ?? failures?.error.code ?? '')
        return
      }
      if (host.sendsNotices && n % 5 === 0) this.#writer.notice('be warned')
      this.#writer.dataRow(row)
    }
    if (isHit && rows.length === 0) {
      this.#fail(failures.error.code)
      return
    }
    if (host.sendsNotices) this.#writer.parameterStatus('TimeZone', 'UTC')
    this.#writer.commandComplete(`SELECT ${rows.length}`)
    if (readId === undefined) return
    world.journal.record('answers', readId, rows.length)
  }

  #fail(code: string, message = `error ${code}`): void {
    const error: ServerError = { severity: 'ERROR', code, message }
    const { world } = this.host
    world.journal.record('fails', this.id, code)
    this.#result = code
    this.#writer.error(error)
    this.#isSkipping = true
  }

  #busy(ms: number, then: () => void): void {
    this.#isBusy = true
    this.#after(ms, () => {
      this.#isBusy = false
      then()
      if (this.#isClosed) return
      if (this.#hasClientLeft) this.#close()
      else this.#work()
    })
  }
}
