import type { Host } from './host.ts'
import type { Replica } from './replica.ts'
import { createLagMeter } from './replica-lag.ts'
import { walPosition } from './wal-position.ts'

/** All replicas of a primary, each looked at every now and then. */
export interface Replicas {
  /**
   * A replica that can be used, the same one for the same key as long as it stays so: the pages of one
   * connection come from one server, whose memory then fills with its own share of the data.
   * @param key at least 32 bytes that are spread evenly, such as a SHA-256
   */
  nearest(key: Buffer): Replica | undefined
  close(): void
}

/** @param everyMs how often the replicas are looked at; the lag is measured no finer than that */
export function watchReplicas(primary: Host, all: Replica[], everyMs: number): Replicas {
  const meter = createLagMeter()
  let timer: NodeJS.Timeout | undefined
  let closed = false

  const look = async () => {
    const { reached } = await walPosition(primary).catch(() => ({ reached: undefined }))
    // Where the primary does not answer, a replica is held against the place where it was last.
    if (reached !== undefined) meter.mark(reached)
    await Promise.all(all.map((replica) => replica.look(meter)))
    if (!closed) timer = setTimeout(look, everyMs).unref()
  }
  if (all.length > 0) void look()
  return {
    nearest: (key) => {
      let best: Replica | undefined
      let highest = -1
      for (const [index, replica] of all.entries()) {
        const score = scoreOf(key, index)
        if (score <= highest || !replica.usable()) continue
        best = replica
        highest = score
      }
      return best
    },
    close: () => {
      closed = true
      clearTimeout(timer)
    },
  }
}

/** Each pair of key and replica has its own; the highest wins, and when that one is out, the next. */
function scoreOf(key: Buffer, index: number): number {
  return (key.readUInt32LE((index % 8) * 4) ^ Math.imul(index, 0x9e3779b1)) >>> 0
}
