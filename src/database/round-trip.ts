import { type Read, runBatch } from './batch-query.ts'
import type { SessionPool } from './pool.ts'
import { type Statement, unnamed } from './statement.ts'
import {
  DatabaseUnavailable,
  HostFailed,
  HostSilent,
  isLostPlan,
  isUnusable,
} from './unavailable.ts'

/** One attempt at a read. */
export interface Attempt extends Read {
  /** When the answer is due, on performance.now()'s clock. */
  due: number
}

/** A server that had less time than this to answer has not been silent, in ms. */
const FAIR_MS = 100

/**
 * Takes each attempt that is answered out of `attempts`, and returns the error that kept the others from
 * it. A client goes back to the pool, unless it, or the server behind it, can no longer be trusted.
 * @throws HostFailed when no connection can be had in time
 */
export async function roundTrip(
  pool: SessionPool,
  statement: Statement,
  attempts: Attempt[],
  longestMs: number,
): Promise<Error | undefined> {
  const client = await pool.connect().catch((cause) => {
    throw new HostFailed('no connection to the database', { cause })
  })
  const leftMs = () => Math.min(...attempts.map(({ due }) => due)) - performance.now()
  if (leftMs() < FAIR_MS) {
    client.release()
    throw new HostFailed('the connection to the database came too late')
  }
  let unanswered = attempts.length
  const look = () => {
    // A server that has answered some of them since the last look is not dead, but may be too slow.
    const alive = attempts.length < unanswered
    unanswered = attempts.length
    if (alive && leftMs() > 0) {
      timer = setTimeout(look, Math.min(longestMs, leftMs()))
      return
    }
    const Failure = alive ? DatabaseUnavailable : HostSilent
    client.connection.stream.destroy(new Failure('the database stopped answering'))
  }
  let timer = setTimeout(look, Math.min(longestMs, leftMs()))
  const first = await runBatch(client, statement, attempts)
  const lostPlan = isLostPlan(first)
  const error = lostPlan ? await runBatch(client, unnamed(statement), attempts) : first
  clearTimeout(timer)
  client.release(lostPlan || isUnusable(error))
  return error
}
