import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { RequestLimit } from './requests.ts'

/** In ms. */
const RESOLUTION = 10
const SAMPLE = 500

/**
 * Measures the mean delay of the event loop twice a second. One long task delays one sample only, so
 * the loop counts as delayed after two samples. @fastify/under-pressure uses a single one. It also
 * reads the memory of the process: in a timer, this throws EMFILE when no file can be opened.
 * @param maximum delay in ms above which `requests` are delayed
 * @returns a function that ends the measurement
 */
export function watchEventLoop(requests: RequestLimit, maximum: number): () => void {
  const delays = monitorEventLoopDelay({ resolution: RESOLUTION })
  delays.enable()
  let delayedSamples = 0
  const timer = setInterval(() => {
    // No delay was recorded yet: the next sample contains it.
    if (delays.count === 0) return
    delayedSamples = delays.mean / 1e6 - RESOLUTION > maximum ? delayedSamples + 1 : 0
    requests.delayed = delayedSamples >= 2
    delays.reset()
  }, SAMPLE).unref()
  return () => {
    clearInterval(timer)
    delays.disable()
  }
}
