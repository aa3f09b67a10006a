import type { Metric, Registry } from 'prom-client'

/** Upper bounds of the buckets, in seconds: a daily sync takes some ms, a large page some hundred. */
const BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** How many durations fell into each bucket, and into the one above all bounds. */
export interface Durations {
  counts: number[]
  /** In seconds. */
  sum: number
}

export function noDurations(): Durations {
  return { counts: new Array(BOUNDS.length + 1).fill(0), sum: 0 }
}

export function record(durations: Durations, seconds: number): void {
  let bucket = 0
  while (bucket < BOUNDS.length && seconds > (BOUNDS[bucket] as number)) bucket += 1
  durations.counts[bucket] = (durations.counts[bucket] as number) + 1
  durations.sum += seconds
}

type Labels = Record<string, string>

/**
 * A histogram that is made of such counts when it is asked for. prom-client's own looks the labels up
 * at every observation, which takes as long as all that is done here for twenty requests.
 */
export function registerHistogram(
  registry: Registry,
  about: { name: string; help: string },
  series: () => { labels: Labels; durations: Durations }[],
): void {
  const values = () => series().flatMap((one) => valuesOf(about.name, one.labels, one.durations))
  const metric = {
    ...about,
    type: 'histogram',
    aggregator: 'sum',
    get: async () => ({ ...about, type: 'histogram', aggregator: 'sum', values: values() }),
  }
  registry.registerMetric(metric as unknown as Metric)
}

function valuesOf(name: string, labels: Labels, { counts, sum }: Durations) {
  let total = 0
  const buckets = counts.map((count, index) => {
    total += count
    const le = index < BOUNDS.length ? String(BOUNDS[index]) : '+Inf'
    return { metricName: `${name}_bucket`, labels: { ...labels, le }, value: total }
  })
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: total },
  ]
}
