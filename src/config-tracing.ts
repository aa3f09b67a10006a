import { type Static, Type } from '@sinclair/typebox'

/**
 * The standard settings of OpenTelemetry that decide whether there are traces; its SDK reads these and
 * all others (OTEL_TRACES_SAMPLER, OTEL_EXPORTER_OTLP_HEADERS and so on) by itself.
 */
export const tracingSettings = {
  OTEL_EXPORTER_OTLP_ENDPOINT: Type.Optional(
    Type.String({ description: 'Collector that traces are sent to; without one, there are none.' }),
  ),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: Type.Optional(
    Type.String({
      description: 'The same, for a whole URL such as http://collector:4318/v1/traces.',
    }),
  ),
  OTEL_TRACES_EXPORTER: Type.Optional(
    Type.String({ description: '`otlp`, `zipkin`, `console`, or `none` for no traces.' }),
  ),
  OTEL_SERVICE_NAME: Type.String({
    default: 'investment-data-query-service',
    description: 'The name of the service in traces.',
  }),
  OTEL_SDK_DISABLED: Type.Boolean({ default: false, description: 'Whether there are no traces.' }),
}

const settings = Type.Object(tracingSettings)

/** Whether traces are asked for. */
export function isTracing(config: Static<typeof settings>): boolean {
  if (config.OTEL_SDK_DISABLED || config.OTEL_TRACES_EXPORTER === 'none') return false
  return [
    config.OTEL_TRACES_EXPORTER,
    config.OTEL_EXPORTER_OTLP_ENDPOINT,
    config.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT,
  ].some((setting) => setting !== undefined)
}
