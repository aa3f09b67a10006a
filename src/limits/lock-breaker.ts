import { TableLocked } from './errors.ts'

/**
 * Rejects reads of locked tables at once, so that they do not occupy all connections. One read at a time is
 * the trial: it waits for its lock on a connection without other reads. If it succeeds, the rejection ends.
 */
export class LockBreaker {
  /** Statements whose tables were locked at their last read. */
  readonly locked = new Set<string>()
  #trying = false

  /** Begins the trial of a locked statement. The caller must call end(). @throws TableLocked during a trial */
  begin(): void {
    if (this.#trying) throw new TableLocked('a table of the statement is locked')
    this.#trying = true
  }

  end(): void {
    this.#trying = false
  }
}
