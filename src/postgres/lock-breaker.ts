import { Unavailable } from '../limits/unavailable.ts'
import { hasState, SqlState } from './failures.ts'
import type { Read } from './read.ts'

/**
 * Circuit breaker for statements whose tables are locked. Their reads fail at once, except one at a time, which waits
 * for the lock. Otherwise they would occupy all connections until lock_timeout.
 */
export class LockBreaker {
  /** Errors of the statements whose tables were locked at their last read, by the names of the statements. */
  readonly #errors = new Map<string, unknown>()
  readonly #trialMs: number
  #trial: Read | undefined
  #triedAt = Number.NEGATIVE_INFINITY

  /** @param trialMs time after which another read may try, even if the last one has not ended */
  constructor(trialMs: number) {
    this.#trialMs = trialMs
  }

  /** True if a table of the statement was locked at its last read. */
  isLocked({ statement }: Read): boolean {
    return this.#errors.has(statement.name)
  }

  /** Returns true for the read that may wait for the lock: one at a time. */
  mayTry(read: Read): boolean {
    const now = performance.now()
    if (now - this.#triedAt < this.#trialMs) return false
    this.#trial = read
    this.#triedAt = now
    return true
  }

  /** Returns the error of a read that may not try. */
  rejection({ statement }: Read): Unavailable {
    const cause = this.#errors.get(statement.name)
    return new Unavailable('a table of the statement is locked', { cause })
  }

  failed(read: Read, error: Error): void {
    if (hasState(error, SqlState.locked)) this.#errors.set(read.statement.name, error)
    if (read === this.#trial) this.#endTrial()
  }

  succeeded({ statement }: Read): void {
    // The lock is gone, so other statements may try at once.
    if (this.#errors.delete(statement.name)) this.#endTrial()
  }

  #endTrial(): void {
    this.#trial = undefined
    this.#triedAt = Number.NEGATIVE_INFINITY
  }
}
