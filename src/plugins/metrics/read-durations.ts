import type { Registry } from 'prom-client'
import type { Watch } from '../../database/watched.ts'
import { type Durations, noDurations, record, registerHistogram } from './durations.ts'

/**
 * How long the reads of requests take, the wait for a connection included, by the name of their
 * statement and by whether there was an answer.
 */
export function readDurations(registry: Registry): Watch {
  const all = new Map<string, { labels: Record<string, string>; durations: Durations }>()
  registerHistogram(
    registry,
    { name: 'database_read_duration_seconds', help: 'Durations of reads, by statement.' },
    () => [...all.values()],
  )
  const note = (statement: string, outcome: 'answered' | 'failed', start: number) => {
    const key = `${outcome} ${statement}`
    const series = all.get(key) ?? { labels: { statement, outcome }, durations: noDurations() }
    all.set(key, series)
    record(series.durations, (performance.now() - start) / 1000)
  }
  return async (statement, run) => {
    const start = performance.now()
    try {
      const answer = await run()
      note(statement, 'answered', start)
      return answer
    } catch (error) {
      note(statement, 'failed', start)
      throw error
    }
  }
}
