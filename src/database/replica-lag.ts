/** How far a replica is behind, found without its clock, its settings or any right on it. */
export interface LagMeter {
  /** Notes where the primary is. */
  mark(reached: bigint): void
  /**
   * @returns ms since the primary was last where the replica is now, at most; 0 is a replica that has all
   * that the primary had when it was asked last, also where the primary has had nothing to do since
   */
  behind(reached: bigint): number
}

/** How long marks are kept: a replica that is further behind is merely that far behind. */
const HISTORY_MS = 600_000

export function createLagMeter(): LagMeter {
  let marks: { at: number; reached: bigint }[] = []
  return {
    mark(reached) {
      const at = performance.now()
      const last = marks.at(-1)
      // An idle primary stands still; then the newest time at which it stood there is what counts.
      if (last?.reached === reached) last.at = at
      else marks.push({ at, reached })
      if (marks[0] && at - marks[0].at > HISTORY_MS) marks = marks.slice(1)
    },
    behind(reached) {
      const newest = marks.at(-1)
      if (newest === undefined) return Number.POSITIVE_INFINITY
      const seen = marks.findLast((mark) => mark.reached <= reached)
      return seen === undefined ? Number.POSITIVE_INFINITY : newest.at - seen.at
    },
  }
}
