import { problem } from '../schemas/problem.ts'
import { mayTake, type Tenant } from './tenants.ts'
import { Unavailable } from './unavailable.ts'

// In bytes. A daily sync has buffers of 4 KiB. New ones led to a full garbage collection each second.
const SMALLEST = 4_096
const LARGEST = 4_194_304
/** Maximum size of idle buffers, in bytes: the pages of about twenty requests. */
const MOST_IDLE = 33_554_432

/** A request, and its part of the memory in bytes. */
export interface MemoryOwner {
  tenant: Tenant
  bytes: number
  ended: boolean
}

/** Memory of responses in flight, in bytes. It reuses buffers: new ones took half of the time of a full page. */
export class ResponseMemory {
  readonly limit: number
  used = 0
  readonly #idle: Buffer[] = []
  #idleBytes = 0
  /** Buffers in use. Only these become idle, and each only once. */
  readonly #lent = new WeakSet<Buffer>()

  constructor(limit: number) {
    this.limit = limit
  }

  /** Returns the error of a request that may not take more memory now: what other apps need stays free. */
  refusal({ ended, tenant, bytes }: MemoryOwner, more: number): Error | undefined {
    if (!ended && mayTake(more, tenant.bytes, this.limit - this.used)) return undefined
    const everFits = mayTake(more, bytes, this.limit - bytes)
    return everFits ? new Unavailable('responses fill the memory') : problem('response_too_large')
  }

  /** Returns a buffer of at least `size` bytes with arbitrary content, without a check of the limits. */
  take(owner: MemoryOwner, size: number): Buffer {
    const isReusable = size >= SMALLEST && size <= LARGEST
    const rounded = isReusable ? 2 ** Math.ceil(Math.log2(size)) : size
    this.count(owner, rounded)
    if (!isReusable) return Buffer.allocUnsafe(size)
    const index = this.#idle.findLastIndex(({ length }) => length === rounded)
    const [idle] = index < 0 ? [] : this.#idle.splice(index, 1)
    if (idle) this.#idleBytes -= rounded
    const buffer = idle ?? Buffer.allocUnsafeSlow(rounded)
    this.#lent.add(buffer)
    return buffer
  }

  /** Takes a buffer back. The caller must not use any part of it again. */
  giveBack(owner: MemoryOwner, buffer: Buffer): void {
    this.count(owner, -buffer.length)
    if (!this.#lent.delete(buffer)) return
    this.#idle.push(buffer)
    this.#idleBytes += buffer.length
    while (this.#idleBytes > MOST_IDLE) this.#idleBytes -= this.#idle.shift()?.length ?? 0
  }

  /** Counts bytes of a request that are stored elsewhere. A negative number releases memory without reusing it. */
  count(owner: MemoryOwner, bytes: number): void {
    if (owner.ended) return
    owner.bytes += bytes
    owner.tenant.bytes += bytes
    this.used += bytes
  }
}
