import { Duplex } from 'node:stream'
import { type Incoming, MessageReader } from './messages.ts'
import { readIdOf } from './statements.ts'
import type { World } from './world.ts'

/** The server's end of a connection. */
export interface Peer {
  receive(messages: Incoming[]): void
  /** Called once, when the client has closed the connection, or its machine has reset it. */
  clientLeft(): void
}

/** Is told what passes through the connections. */
export interface Watcher {
  /** Called when the client sends a read. */
  onReadSent(readId: number, link: Link, isNamed: boolean): void
  /** Called when an answer has arrived: the rows of a read, or an SQLSTATE. */
  onAnswer(readId: number, link: Link, result: string): void
}

/** How bytes reach the other end: client and server write whole messages, and a network may cut them anywhere. */
const PIECES = ['whole', 'whole', 'whole', 'halves', 'random', 'bytes'] as const
/** Length of ReadyForQuery, which follows the end of an answer. */
const READY_BYTES = 6
/** Most bytes that arrive one by one: more would only take time. */
const MOST_SINGLE = 400

/** One TCP connection, with what the network does to it. */
export class Link {
  readonly id: number
  readonly host: string
  readonly socket: SimulatedSocket
  /** Delay of a packet in each direction, in ms. */
  latencyMs: number
  /** Bytes that the network carries to the client in a ms. */
  bytesPerMs = Number.POSITIVE_INFINITY
  /** Bytes that still reach the server. */
  requestBytesLeft = Number.POSITIVE_INFINITY
  /** Bytes that still reach the client. */
  bytesLeft = Number.POSITIVE_INFINITY
  /** True if the other end has forgotten the connection: it resets what it gets. */
  isForgotten = false
  /** Called at the cut after the last byte. */
  onCut: (() => void) | undefined
  /** Reads that the client has sent, and whose answers have not arrived. */
  readonly inFlight: number[] = []
  /** Time of the last answer, or of the first read after a pause. */
  progressAt: number
  readonly openedAt: number
  /** True after an error that says that a prepared statement is lost. */
  hasLostPlan = false
  /** True if the client uses it for large reads. */
  isLarge = false
  /** True after its first read. */
  isUsed = false
  /** True if the server has ended it with an error: what the client sent meanwhile gets that error. */
  isTerminated = false
  /** Time of the last byte that arrived at the client. */
  arrivedAt = 0
  /** What the client has sent, and what has arrived at the server. */
  readonly #sent = new MessageReader()
  readonly #arrived = new MessageReader()
  readonly #world: World
  readonly #watcher: Watcher
  #peer: Peer | undefined
  #toServerAt = 0
  #toClientAt = 0
  #parts = 0
  #hasClientLeft = false

  constructor(
    world: World,
    { id, host, socket, watcher }: Pick<Link, 'id' | 'host' | 'socket'> & { watcher: Watcher },
  ) {
    this.#world = world
    this.#watcher = watcher
    this.id = id
    this.host = host
    this.socket = socket
    this.openedAt = world.now
    this.progressAt = world.now
    this.latencyMs = world.chance('latency', id) < 0.8 ? 0 : 1 + 2 * world.chance('far', id)
  }

  /** True if the server does not learn what the client does. */
  get isSilent(): boolean {
    return this.requestBytesLeft <= 0 || this.bytesLeft <= 0
  }

  /** True until the client has closed its end. */
  get isOpen(): boolean {
    return !this.#hasClientLeft && !this.socket.destroyed && !this.socket.writableEnded
  }

  /** True if it is silent, or becomes so after some more bytes. */
  get endsInSilence(): boolean {
    return Number.isFinite(this.requestBytesLeft) || Number.isFinite(this.bytesLeft)
  }

  accept(peer: Peer): void {
    this.#peer = peer
  }

  /** Loses all packets of both directions from now on. */
  silence(): void {
    this.requestBytesLeft = 0
    this.bytesLeft = 0
  }

  fromClient(bytes: Buffer): void {
    const messages = this.#sent.read(bytes)
    for (const message of messages) {
      const id = readIdOf(message)
      if (id === undefined) continue
      const isNamed = message.type === 'bind' && message.name !== ''
      this.#watcher.onReadSent(id, this, isNamed)
      if (this.inFlight.length === 0) this.progressAt = this.#world.now
      this.inFlight.push(id)
      this.isUsed = true
    }
    if (this.isForgotten) {
      this.reset()
      return
    }
    for (const piece of this.#piecesOf(Buffer.from(bytes))) {
      const kept = piece.subarray(0, Math.min(piece.length, this.requestBytesLeft))
      this.#toServer(() => this.#peer?.receive(this.#arrived.read(kept)))
      this.requestBytesLeft -= kept.length
    }
  }

  clientLeaves(): void {
    if (this.#hasClientLeft) return
    this.#hasClientLeft = true
    this.#toServer(() => this.#peer?.clientLeft())
  }

  /** Notes that the answer of a read has arrived: its rows, or an SQLSTATE. */
  answered(id: number, result: string): void {
    const at = this.inFlight.indexOf(id)
    if (at >= 0) this.inFlight.splice(at, 1)
    this.progressAt = this.#world.now
    this.#watcher.onAnswer(id, this, result)
  }

  /**
   * Sends bytes of the server, in pieces.
   * @param arrived called before the one that ends the answer
   * @param after bytes that follow the answer
   */
  toClient(bytes: Buffer, arrived?: () => void, after = READY_BYTES): void {
    let left = bytes.length
    let hasEnded = false
    for (const piece of this.#piecesOf(bytes)) {
      const kept = piece.subarray(0, Math.min(piece.length, this.bytesLeft))
      this.bytesLeft -= kept.length
      left -= kept.length
      const isEnd: boolean = !hasEnded && left <= after
      hasEnded ||= isEnd
      this.#toClientAt = Math.max(this.#toClientAt, this.#world.now) + kept.length / this.bytesPerMs
      this.#toSocket(() => {
        if (isEnd && this.isOpen) arrived?.()
        this.arrivedAt = this.#world.now
        this.socket.deliver(kept)
      })
      if (this.bytesLeft <= 0) {
        this.onCut?.()
        this.onCut = undefined
        return
      }
    }
  }

  /** Closes the connection from the server: FIN. */
  end(): void {
    if (this.bytesLeft > 0) this.#toSocket(() => this.socket.deliverEnd())
  }

  /** Closes the connection from the network or a server that crashed: RST. */
  reset(): void {
    this.#toSocket(() => this.socket.fail('ECONNRESET', 'read ECONNRESET'))
  }

  #toServer(action: () => void): void {
    if (this.requestBytesLeft <= 0) return
    const { now } = this.#world
    this.#toServerAt = Math.max(this.#toServerAt, now + this.latencyMs)
    this.#world.clock.after(this.#toServerAt - now, action)
  }

  #toSocket(action: () => void): void {
    const { now } = this.#world
    this.#toClientAt = Math.max(this.#toClientAt, now + this.latencyMs)
    this.#world.clock.after(this.#toClientAt - now, action)
  }

  #piecesOf(bytes: Buffer): Buffer[] {
    this.#parts += 1
    const draw = (purpose: string, n = 0) =>
      this.#world.chance('pieces', purpose, this.id, this.#parts, n)
    const cut = this.#world.cutsPackets ? 1 : 0.5
    const style = PIECES[Math.floor(draw('style') * cut * PIECES.length)] ?? 'whole'
    if (style === 'whole' || bytes.length < 2) return [bytes]
    if (style === 'halves') {
      const at = 1 + Math.floor(draw('half') * (bytes.length - 1))
      return [bytes.subarray(0, at), bytes.subarray(at)]
    }
    const pieces: Buffer[] = []
    for (let at = 0; at < bytes.length; ) {
      const single = style === 'bytes' && at < MOST_SINGLE
      const size = single ? 1 : 1 + Math.floor(draw('size', at) * 1_500)
      pieces.push(bytes.subarray(at, at + size))
      at += size
    }
    return pieces
  }
}

/** All sockets of the service read into one buffer: a listener that keeps a part of it finds other bytes later. */
const SHARED = Buffer.alloc(262_144)
const NO_BYTE = 0xee

/** What a socket connects through. */
export interface Opener {
  /** Times of the errors of sockets. */
  readonly failures: number[]
  readonly now: number
  open(socket: SimulatedSocket, host: string): Link
}

/** A socket as the code under test sees it. */
export class SimulatedSocket extends Duplex {
  readonly #network: Opener
  #link: Link | undefined

  constructor(network: Opener) {
    super({ allowHalfOpen: false })
    this.#network = network
  }

  connect(_port: number, host: string): this {
    this.#link = this.#network.open(this, host)
    return this
  }

  /** Takes bytes from the network. */
  deliver(bytes: Buffer): void {
    for (let at = 0; at < bytes.length && !this.destroyed; at += SHARED.length) {
      const length = bytes.copy(SHARED, 0, at)
      this.emit('data', SHARED.subarray(0, length))
      SHARED.fill(NO_BYTE, 0, length)
    }
  }

  deliverEnd(): void {
    if (this.destroyed) return
    this.push(null)
    this.read(0)
  }

  fail(code: string, message: string): void {
    if (this.destroyed) return
    this.#network.failures.push(this.#network.now)
    this.destroy(Object.assign(new Error(message), { code }))
  }

  setNoDelay(): this {
    return this
  }

  setKeepAlive(): this {
    return this
  }

  override _read(): void {}

  override _write(bytes: Buffer, _encoding: string, done: () => void): void {
    this.#link?.fromClient(bytes)
    done()
  }

  override _writev(parts: { chunk: Buffer }[], done: () => void): void {
    this.#link?.fromClient(Buffer.concat(parts.map(({ chunk }) => chunk)))
    done()
  }

  override _final(done: () => void): void {
    this.#link?.clientLeaves()
    done()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#link?.clientLeaves()
    done(error)
  }
}
