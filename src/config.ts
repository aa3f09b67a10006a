import { type Static, Type } from '@sinclair/typebox'
import { envSchema } from 'env-schema'
import { OperatorError } from './operator-error.ts'

/** The settings that say how much is taken on at once, for how long, and what then happens. */
const limitSettings = {
  DATABASE_QUEUE: Type.Integer({
    default: 200,
    minimum: 0,
    maximum: 100_000,
    description: 'Requests that may wait for a server connection; the next one is refused at once.',
  }),
  ANSWER_MEMORY_MB: Type.Integer({
    default: 288,
    minimum: 16,
    maximum: 65_536,
    description: 'Answers that are read but not yet sent, in MiB; beyond it, requests are refused.',
  }),
  MAX_REQUESTS: Type.Integer({
    default: 1_000,
    minimum: 1,
    maximum: 1_000_000,
    description: 'Requests under way in one instance; the next one is refused at once.',
  }),
  MAX_SOCKETS: Type.Integer({
    default: 5_000,
    minimum: 1,
    maximum: 1_000_000,
    description: 'Client connections of one instance; the next one is closed at once.',
  }),
  MAX_EVENT_LOOP_DELAY_MS: Type.Integer({
    default: 1_000,
    minimum: 0,
    maximum: 60_000,
    description:
      'Requests are refused while the process is later than this on average, in ms; 0: never.',
  }),
  CLIENT_STALL_MS: Type.Integer({
    default: 120_000,
    minimum: 1_000,
    maximum: 3_600_000,
    description: 'A client that takes nothing of its answer for so long is cut off, in ms.',
  }),
  SHUTDOWN_DELAY_MS: Type.Integer({
    default: 3_000,
    minimum: 0,
    maximum: 600_000,
    description: 'After SIGTERM, how long requests are still taken while not ready, in ms.',
  }),
  SHUTDOWN_GRACE_MS: Type.Integer({
    default: 12_000,
    minimum: 100,
    maximum: 600_000,
    description: 'How long requests under way then have to finish, in ms.',
  }),
  DATABASE_REPLICA_URL: Type.Optional(
    Type.String({
      pattern: '^postgres(ql)?://',
      description: 'Standbys to read from: URLs, or hosts within one, with commas between.',
    }),
  ),
  REPLICA_MAX_LAG_MS: Type.Integer({
    default: 5_000,
    minimum: 1_000,
    maximum: 3_600_000,
    description: 'A standby that is further behind is left out, in ms.',
  }),
}

/**
 * The standard settings of OpenTelemetry that decide whether there are traces; its SDK reads these and
 * all others (OTEL_TRACES_SAMPLER, OTEL_EXPORTER_OTLP_HEADERS and so on) by itself.
 */
const tracingSettings = {
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

const TracingSettings = Type.Object(tracingSettings)

/** Whether traces are asked for. */
export function isTracing(config: Static<typeof TracingSettings>): boolean {
  if (config.OTEL_SDK_DISABLED || config.OTEL_TRACES_EXPORTER === 'none') return false
  return [
    config.OTEL_TRACES_EXPORTER,
    config.OTEL_EXPORTER_OTLP_ENDPOINT,
    config.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT,
  ].some((setting) => setting !== undefined)
}

/** The faults of settings that are sound one by one, but not together; one sentence each. */
function jointFaults(settings: NodeJS.ProcessEnv): string[] {
  return identityProviderFaults(settings)
}

function identityProviderFaults(settings: NodeJS.ProcessEnv): string[] {
  const needed = ['AUTH_ISSUER', 'AUTH_AUDIENCE', 'AUTH_JWKS_URL']
  const missing = needed.filter((name) => settings[name] === undefined)
  const given = Object.keys(settings).find((name) =>
    /^AUTH_(ISSUER|AUDIENCE|JWKS_URL|CLIENT_ID_CLAIM)$/.test(name),
  )
  const faults: string[] = []
  if (given !== undefined && missing.length > 0) {
    faults.push(`${missing.join(' and ')} must be set too, since ${given} is`)
  }
  const url = settings.AUTH_JWKS_URL
  if (url !== undefined && !isSafe(url)) {
    faults.push('AUTH_JWKS_URL must be an https address, or one of this machine')
  }
  return faults
}

/** Keys that came over an open line could be anyone's. */
function isSafe(address: string): boolean {
  const url = URL.parse(address)
  if (url?.protocol === 'https:') return true
  return url !== null && /^(localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname)
}

/**
 * Every setting of the service, by the name of its environment variable. Nothing else
 * of the service reads the environment, but OpenTelemetry's SDK its own variables. A test holds that README.md and .env.example know each one.
 */
const Environment = Type.Object({
  DATABASE_URL: Type.Optional(
    Type.String({
      pattern: '^postgres(ql)?://',
      description: 'PostgreSQL to use; without it, an embedded one in DATA_DIR (development).',
    }),
  ),
  DATA_DIR: Type.String({
    default: '.data',
    minLength: 1,
    description: 'Folder of the embedded PostgreSQL.',
  }),
  DATABASE_POOL_SIZE: Type.Integer({
    default: 10,
    minimum: 1,
    maximum: 1000,
    description: 'Server connections for requests at most; one more is for the service itself.',
  }),
  DATABASE_POOLER: Type.Boolean({
    default: false,
    description: 'Whether PgBouncer, in transaction mode, stands before the database.',
  }),
  DATABASE_PREPARE: Type.Boolean({
    default: true,
    description: 'Prepare statements by name; false for PgBouncer before 1.21.',
  }),
  DATABASE_WAIT_MS: Type.Integer({
    default: 5_000,
    minimum: 10,
    maximum: 60_000,
    description: 'How long a request may wait for a server connection, in ms.',
  }),
  STATEMENT_TIMEOUT_MS: Type.Integer({
    default: 5_000,
    minimum: 100,
    maximum: 600_000,
    description: 'How long the database may work on one statement, in ms.',
  }),
  REQUEST_TIMEOUT_MS: Type.Integer({
    default: 10_000,
    minimum: 100,
    maximum: 300_000,
    description: 'How long a client may take to send its request, in ms.',
  }),
  ...limitSettings,
  ...tracingSettings,
  HOST: Type.String({ default: '127.0.0.1', minLength: 1, description: 'Address to listen on.' }),
  PORT: Type.Integer({ default: 3000, minimum: 0, maximum: 65_535, description: 'Port.' }),
  METRICS_PORT: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 65_535,
      description: 'Port of the metrics for Prometheus; without it, there are none.',
    }),
  ),
  METRICS_HOST: Type.String({
    default: '127.0.0.1',
    minLength: 1,
    description: 'Address that the metrics are served on: whoever reaches it can read them.',
  }),
  MAX_LIMIT: Type.Integer({
    default: 10_000,
    minimum: 1_000,
    maximum: 100_000,
    description: 'Largest `limit` that a request may ask for, in rows.',
  }),
  AUTH_ISSUER: Type.Optional(
    Type.String({
      minLength: 1,
      description: 'Identity provider whose access tokens are taken beside our own: their `iss`.',
    }),
  ),
  AUTH_AUDIENCE: Type.Optional(
    Type.String({ minLength: 1, description: 'What their `aud` must name: this service.' }),
  ),
  AUTH_JWKS_URL: Type.Optional(
    Type.String({
      pattern: '^https?://',
      description: 'Where the provider publishes its keys; https, but on this machine.',
    }),
  ),
  AUTH_CLIENT_ID_CLAIM: Type.Optional(
    Type.String({
      minLength: 1,
      description: 'Claim with the client id of the app; else `client_id`, or `azp`.',
    }),
  ),
  RATE_LIMIT_PER_MINUTE: Type.Integer({
    default: 0,
    minimum: 0,
    maximum: 10_000_000,
    description: 'Requests that an app may send in a minute; 0 for as many as it likes.',
  }),
  REDIS_URL: Type.Optional(
    Type.String({
      pattern: '^rediss?://',
      description: 'Redis that counts these requests for all instances; else each one does.',
    }),
  ),
  LOG_LEVEL: Type.Union(
    ['fatal', 'error', 'warn', 'info', 'debug', 'silent'].map((level) => Type.Literal(level)),
    { default: 'info', description: 'What is logged: this and what is graver.' },
  ),
})

export type Config = Static<typeof Environment>
export const settings = Environment.properties

/** The environment does not fit; the message tells every fault, one a line. */
export class ConfigurationError extends OperatorError {
  override name = 'ConfigurationError'
}

/**
 * Reads the settings.
 * @throws ConfigurationError that names every setting which is not as it must be
 */
export function readConfig(environment: NodeJS.ProcessEnv): Config {
  // An empty variable is one that was not set: that is how compose files and shells leave them out.
  const data = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''))
  const lines: string[] = []
  let config: Config | undefined
  try {
    config = envSchema<Config>({ schema: Environment, data, env: false, dotenv: false })
  } catch (error) {
    const faults = (error as { errors?: { instancePath: string; message: string }[] }).errors
    if (faults === undefined) throw error
    lines.push(...faults.map(({ instancePath, message }) => `${instancePath.slice(1)} ${message}`))
  }
  lines.push(...jointFaults(data))
  if (config === undefined || lines.length > 0) throw new ConfigurationError(lines.join('\n'))
  return config
}

/**
 * To catch the failed import of src/development with, which the production image does not hold.
 * @throws ConfigurationError that names the setting which is missing then; any other error as it is
 */
export function withoutEmbedded(error: NodeJS.ErrnoException): never {
  if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error
  throw new ConfigurationError(
    'DATABASE_URL must be set: there is no embedded PostgreSQL in this installation.',
  )
}
