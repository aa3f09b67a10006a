import { AggregatorRegistry, Counter, Gauge, Registry } from 'prom-client'
import type { ProcessMetrics } from '../primary.ts'

/** Metrics of all workers of an instance. */
export class WorkerMetrics {
  readonly #own = new Registry()
  readonly #replaced = new Counter({
    name: 'workers_replaced_total',
    help: 'Workers that ended without a signal to the service.',
    registers: [this.#own],
  })
  /** Counters and histograms of the workers that have ended: a counter must not decrease. */
  #ended: ProcessMetrics = []

  /** @param droppedLines number of log lines that the primary process could not write */
  constructor(droppedLines: () => number) {
    // The workers have later start times. prom-client takes the first one.
    new Gauge({
      name: 'process_start_time_seconds',
      help: 'Start time of the process since unix epoch in seconds.',
      registers: [this.#own],
      aggregator: 'first',
    }).set(Math.round(performance.timeOrigin / 1000))
    new Counter({
      name: 'log_lines_dropped_total',
      help: 'Log lines that could not be written.',
      registers: [this.#own],
      collect() {
        this.reset()
        this.inc(droppedLines())
      },
    })
  }

  workerReplaced(): void {
    this.#replaced.inc()
  }

  /** Keeps the last metrics of a worker that has ended. */
  async workerEnded(last: ProcessMetrics): Promise<void> {
    const cumulative = last.filter(({ type }) => String(type) !== 'gauge')
    this.#ended = await AggregatorRegistry.aggregate([this.#ended, cumulative]).getMetricsAsJSON()
  }

  /** Returns the metrics of these workers and of those that have ended, for Prometheus. */
  async text(workers: ProcessMetrics[]): Promise<string> {
    const own = await this.#own.getMetricsAsJSON()
    return AggregatorRegistry.aggregate([own, this.#ended, ...workers]).metrics()
  }
}
