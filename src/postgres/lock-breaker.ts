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
  /** The read that may wait for a lock. */
  #trial: Read | undefined

  /**
   * Returns the error of a read whose table was locked at the last read, while another one waits for the lock. Else the read
   * becomes the one that waits, on a session alone.
   */
  refuseOrTry(read: Read): Unavailable | undefined {
    const cause = this.#errors.get(read.statement.name)
    if (cause === undefined) return undefined
    if (this.#trial && !this.#trial.isEnded)
      return new Unavailable('a table of the statement is locked', { cause })
    this.#trial = read
    read.isExclusive = true
    return undefined
  }

  failed(read: Read, error: Error): void {
    if (hasState(error, SqlState.locked)) this.#errors.set(read.statement.name, error)
    this.#forget(read)
  }

  succeeded(read: Read): void {
    this.#errors.delete(read.statement.name)
    this.#forget(read)
  }

  /** Keeps no read that has ended, because it has its rows. */
  #forget(read: Read): void {
    if (read === this.#trial) this.#trial = undefined
  }
}
