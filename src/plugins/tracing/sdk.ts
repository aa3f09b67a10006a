import { setTimeout as sleep } from 'node:timers/promises'
import { DiagLogLevel, diag } from '@opentelemetry/api'
import { NodeSDK } from '@opentelemetry/sdk-node'
import type { FastifyInstance } from 'fastify'
import { FifoMap } from 'toad-cache'

/** How long the last spans have to leave when the service closes, in ms. */
const LAST_CALL = 2_000

/** How often the same failure is told, in ms: with many requests, spans leave several times a second. */
const SILENCE = 60_000

/** How many failures are kept in mind; the oldest ones are forgotten. */
const MOST_MESSAGES = 100

/**
 * Starts OpenTelemetry as its standard environment variables say: where to, in which form, how many of
 * the traces. Metrics and logs have their own ways out of this service.
 */
export function startSdk(app: FastifyInstance, serviceName: string): void {
  const sdk = new NodeSDK({ serviceName, metricReaders: [], logRecordProcessors: [] })
  const silentUntil = new FifoMap<number>(MOST_MESSAGES)
  const tell = (message: string) => {
    const now = performance.now()
    if (now < (silentUntil.get(message) ?? 0)) return
    silentUntil.set(message, now + SILENCE)
    app.log.warn({ message }, 'traces cannot be exported')
  }
  const silent = () => {}
  diag.setLogger(
    { error: tell, warn: tell, info: silent, debug: silent, verbose: silent },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  )
  sdk.start()
  app.addHook('onClose', async () => {
    await Promise.race([sdk.shutdown(), sleep(LAST_CALL, undefined, { ref: false })])
  })
}
