import type { Tenant } from './tenants.ts'

/** Time between two lines of a tenant that repeats its requests, in ms. */
const INTERVAL_MS = 1_000

interface Sample {
  /** Lines that were left out before this one; undefined if the tenant does not repeat its requests. */
  unlogged: number | undefined
}

const ONLY_LINE: Sample = { unlogged: undefined }

interface LastLine {
  /** On performance.now()'s clock. */
  loggedAt: number
  /** Lines that were left out since then. */
  unlogged: number
}

/** Chooses the log lines of tenants that repeat rejected requests: one a second. */
export class LogSamples {
  readonly #lastLines = new WeakMap<Tenant, LastLine>()

  /** Chooses or leaves out a line. @returns undefined if it is left out */
  next(repeatedBy: Tenant | undefined): Sample | undefined {
    if (repeatedBy === undefined) return ONLY_LINE
    const now = performance.now()
    const last = this.#lastLines.get(repeatedBy)
    if (last !== undefined && now - last.loggedAt < INTERVAL_MS) {
      last.unlogged += 1
      return undefined
    }
    this.#lastLines.set(repeatedBy, { loggedAt: now, unlogged: 0 })
    return { unlogged: last?.unlogged ?? 0 }
  }
}
