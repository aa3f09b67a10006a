import { problem } from '../schemas/problem.ts'
import type { ResponseMemory } from './response-memory.ts'
import { fitsAlone } from './shares.ts'
import type { Tenant } from './tenants.ts'
import { Unavailable } from './unavailable.ts'

/** Memory of one response: its rows, and its body. The rows and the writer of the body know nothing else of a request. */
export class MemoryAccount {
  readonly #memory: ResponseMemory
  readonly #owner: { readonly tenant: Tenant }
  #bytes = 0
  #body: Buffer | undefined
  #isClosed = false

  /** @param owner its tenant stays the same from the first byte on */
  constructor(memory: ResponseMemory, owner: { readonly tenant: Tenant }) {
    this.#memory = memory
    this.#owner = owner
  }

  /** Opens an account of the same memory. */
  another(owner: { readonly tenant: Tenant }): MemoryAccount {
    return new MemoryAccount(this.#memory, owner)
  }

  /** Bytes of all responses together. */
  get limit(): number {
    return this.#memory.limit
  }

  /** True if no client waits for the response any more. */
  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Returns the error of a response that may not take more memory now: what other apps need stays free. */
  refusal(more: number): Error | undefined {
    const { limit, shares } = this.#memory
    if (!this.#isClosed && shares.mayTake(this.#owner.tenant, more, limit)) return undefined
    if (!fitsAlone(more, this.#bytes, limit)) return problem('response_too_large')
    return new Unavailable('responses fill the memory')
  }

  /** Returns a buffer of at least `size` bytes with arbitrary content, without a check of the limits. */
  take(size: number): Buffer {
    const buffer = this.#memory.lend(size)
    this.count(buffer.length)
    return buffer
  }

  /** Takes a buffer for the body. Others reuse it when the whole response is sent. */
  takeForBody(size: number): Buffer {
    this.#body = this.take(size)
    return this.#body
  }

  /** Gives a buffer back. The caller must not use any part of it again. */
  giveBack(buffer: Buffer): void {
    this.count(-buffer.length)
    this.#memory.takeBack(buffer)
  }

  /** Counts bytes that are stored elsewhere. A negative number releases memory without reusing it. */
  count(bytes: number): void {
    if (this.#isClosed) return
    this.#bytes += bytes
    this.#memory.shares.add(this.#owner.tenant, bytes)
  }

  /** Ends the response. If all of it was `sent`, others reuse the memory of its body: its writer must stop. */
  close(sent: boolean): void {
    if (sent && this.#body) this.giveBack(this.#body)
    this.count(-this.#bytes)
    this.#body = undefined
    this.#isClosed = true
  }
}
