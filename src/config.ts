import { type Static, Type } from '@sinclair/typebox'
import { envSchema } from 'env-schema'
import { jointFaults } from './config-faults.ts'
import { limitSettings } from './config-limits.ts'
import { tracingSettings } from './config-tracing.ts'

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
export class ConfigurationError extends Error {
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
