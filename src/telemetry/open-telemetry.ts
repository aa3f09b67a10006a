import { context, propagation, type TextMapPropagator, trace } from '@opentelemetry/api'
import {
  CompositePropagator,
  getBooleanFromEnv,
  getNumberFromEnv,
  getStringFromEnv,
  getStringListFromEnv,
  W3CBaggagePropagator,
  W3CTraceContextPropagator,
} from '@opentelemetry/core'
import { OTLPTraceExporter as JsonExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { OTLPTraceExporter as ProtobufExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import {
  defaultResource,
  detectResources,
  envDetector,
  hostDetector,
  osDetector,
  processDetector,
  resourceFromAttributes,
  serviceInstanceIdDetector,
} from '@opentelemetry/resources'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ConsoleSpanExporter,
  ParentBasedSampler,
  type Sampler,
  SimpleSpanProcessor,
  type SpanProcessor,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import { OperatorError } from '../operator-error.ts'

/**
 * Starts the traces of OpenTelemetry, by its standard variables. `@opentelemetry/sdk-node` reads the same variables, but it
 * brings 53 packages more: metrics, logs, gRPC and instrumentation.
 * @returns a function that exports the last spans, and ends the traces
 * @throws OperatorError if a variable has a value that is not supported
 */
export function startTraces(serviceName: string): () => Promise<void> {
  if (getBooleanFromEnv('OTEL_SDK_DISABLED')) return async () => {}
  const provider = new TracerProvider({
    resource: resourceOf(serviceName),
    spanProcessors: spanProcessors(),
    sampler: sampler(),
    spanLimits: {
      attributeCountLimit: limit('ATTRIBUTE_COUNT', 128),
      attributeValueLengthLimit: limit('ATTRIBUTE_VALUE_LENGTH', Number.POSITIVE_INFINITY),
    },
  })
  propagation.setGlobalPropagator(propagator())
  trace.setGlobalTracerProvider(provider)
  return async () => {
    await provider.shutdown()
  }
}

/** Ends what startTraces() has set for the process. */
export function disableTraces(): void {
  for (const api of [trace, context, propagation]) api.disable()
}

/** Describes the process: its host, its start, and OTEL_RESOURCE_ATTRIBUTES. */
function resourceOf(serviceName: string) {
  const detectors = [
    serviceInstanceIdDetector,
    processDetector,
    hostDetector,
    osDetector,
    envDetector,
  ]
  return defaultResource()
    .merge(detectResources({ detectors }))
    .merge(resourceFromAttributes({ 'service.name': serviceName }))
}

/** Limit of a span; else, the limit of all signals. The service makes no events and no links. */
function limit(name: string, standard: number): number {
  return nonNegative(`OTEL_SPAN_${name}_LIMIT`, nonNegative(`OTEL_${name}_LIMIT`, standard))
}

/** Returns the value in use of a table. @throws OperatorError if the table does not have it */
function choice<T>(variable: string, value: string, table: Record<string, T>): T {
  const chosen = Object.entries(table).find(([name]) => name === value)
  if (chosen) return chosen[1]
  throw new OperatorError(
    `${variable}: ${value} is not supported. Use ${Object.keys(table).join(', ')}.`,
  )
}

/** Returns the values in use of a list, each once. @throws OperatorError if the table does not have one of them */
function choices<T>(variable: string, standard: string[], table: Record<string, T>): T[] {
  const listed = getStringListFromEnv(variable) ?? []
  const names = listed.length === 0 ? standard : [...new Set(listed)]
  if (names.includes('none')) return []
  return names.map((name) => choice(variable, name, table))
}

const propagators: Record<string, () => TextMapPropagator> = {
  tracecontext: () => new W3CTraceContextPropagator(),
  baggage: () => new W3CBaggagePropagator(),
}

function propagator(): TextMapPropagator {
  const made = choices('OTEL_PROPAGATORS', Object.keys(propagators), propagators)
  return new CompositePropagator({ propagators: made.map((make) => make()) })
}

const exporters: Record<string, () => SpanProcessor> = {
  otlp: () => batches(otlpExporter()),
  console: () => new SimpleSpanProcessor({ exporter: new ConsoleSpanExporter() }),
}

function spanProcessors(): SpanProcessor[] {
  return choices('OTEL_TRACES_EXPORTER', ['otlp'], exporters).map((make) => make())
}

/** The exporters read OTEL_EXPORTER_OTLP_ENDPOINT, the headers, the timeout and the certificates. */
const protocols: Record<string, () => JsonExporter | ProtobufExporter> = {
  'http/protobuf': () => new ProtobufExporter(),
  'http/json': () => new JsonExporter(),
}

function otlpExporter() {
  const variables = ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL']
  const variable = variables.find((name) => getStringFromEnv(name) !== undefined) ?? ''
  const protocol = getStringFromEnv(variable)?.trim() ?? 'http/protobuf'
  const make = choice(variable, protocol, protocols)
  return make()
}

function batches(exporter: JsonExporter | ProtobufExporter): SpanProcessor {
  return new BatchSpanProcessor({
    exporter,
    maxQueueSize: nonNegative('OTEL_BSP_MAX_QUEUE_SIZE', 2_048),
    scheduledDelayMillis: nonNegative('OTEL_BSP_SCHEDULE_DELAY', 5_000),
    exportTimeoutMillis: nonNegative('OTEL_BSP_EXPORT_TIMEOUT', 30_000),
    maxExportBatchSize: nonNegative('OTEL_BSP_MAX_EXPORT_BATCH_SIZE', 512),
  })
}

/** Returns a variable, or the standard of OpenTelemetry's specification. @throws OperatorError if it is negative */
function nonNegative(variable: string, standard: number): number {
  const value = getNumberFromEnv(variable) ?? standard
  if (value >= 0) return value
  throw new OperatorError(`${variable}: ${value} is negative. Use a number from 0 on.`)
}

const samplers: Record<string, () => Sampler> = {
  always_on: () => new AlwaysOnSampler(),
  always_off: () => new AlwaysOffSampler(),
  traceidratio: () => new TraceIdRatioBasedSampler(ratio()),
  parentbased_always_on: () => new ParentBasedSampler({ root: new AlwaysOnSampler() }),
  parentbased_always_off: () => new ParentBasedSampler({ root: new AlwaysOffSampler() }),
  parentbased_traceidratio: () =>
    new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio()) }),
}

function sampler(): Sampler {
  const variable = 'OTEL_TRACES_SAMPLER'
  const name = getStringFromEnv(variable) ?? 'parentbased_always_on'
  const make = choice(variable, name, samplers)
  return make()
}

/** Part of the requests that are traced, from 0 to 1. */
function ratio(): number {
  const variable = 'OTEL_TRACES_SAMPLER_ARG'
  const value = getNumberFromEnv(variable) ?? 1
  if (value >= 0 && value <= 1) return value
  throw new OperatorError(`${variable}: ${value} is not from 0 to 1.`)
}
