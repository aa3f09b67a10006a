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
  /** The last read that was allowed to wait for a lock. */
  #trial: Read | undefined

  /**
   * Returns the error of a read whose table was locked at the last read, while another one waits for the lock. Else the read
   * may wait, on a session alone. Each read ends, at the latest at its due time.
   */
  refusal(read: Read): Unavailable | undefined {
    const cause = this.#errors.get(read.statement.name)
    if (cause === undefined) return undefined
    if (this.#trial && !this.#trial.isEnded)
      return new Unavailable('a table of the statement is locked', { cause })
    this.#trial = read
    read.isExclusive = true
    return undefined
  }

  failed({ statement }: Read, error: Error): void {
    if (hasState(error, SqlState.locked)) this.#errors.set(statement.name, error)
  }

  succeeded({ statement }: Read): void {
    this.#errors.delete(statement.name)
  }
}
