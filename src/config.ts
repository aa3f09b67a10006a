import { isIP, isIPv4 } from 'node:net'
import { type Static, type TObject, Type } from '@sinclair/typebox'
import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import { closestMatch } from 'leven'
import { ConfigurationError } from './env-file.ts'
import { serverUrlProblem } from './postgres/server-urls.ts'
import { LARGEST_LIMIT } from './schemas/list.ts'

const text = (byDefault: string, description: string) =>
  Type.String({ default: byDefault, description })
const optional = (description: string) => Type.Optional(Type.String({ description }))
const flag = (byDefault: boolean, description: string) =>
  Type.Boolean({ default: byDefault, description })
const integer = (
  byDefault: number,
  [minimum, maximum]: [minimum: number, maximum: number],
  description: string,
) => Type.Integer({ default: byDefault, minimum, maximum, description })

/** Settings by the name of their environment variable, with units, limits and defaults. */
const Settings = Type.Object({
  // Server
  HOST: text('127.0.0.1', 'Address to listen on.'),
  PORT: integer(3000, [0, 65_535], 'Port to listen on.'),
  LOG_LEVEL: Type.Unsafe<string>({
    type: 'string',
    enum: ['fatal', 'error', 'warn', 'info', 'debug', 'silent'],
    default: 'info',
    description: 'Lowest level that is logged.',
  }),
  MAX_LIMIT: integer(
    10_000,
    [1_000, LARGEST_LIMIT],
    'Maximum value of the parameter `limit`, in rows.',
  ),
  DOCS_PAGE: flag(true, 'Serve the page /docs. It does not affect /openapi.json.'),
  PUBLIC_URL: optional(
    'URL of the service for clients, in /openapi.json. If unset: a relative URL.',
  ),
  CONTACT_URL: optional('Page of the contact for clients, in /openapi.json. If unset: none.'),
  DEMO_TOKENS: optional(
    'Public tokens that the page /docs fills in: APP_TOKEN,CONNECTION_TOKEN. If unset: none.',
  ),
  SHUTDOWN_DELAY_MS: integer(
    3_000,
    [0, 600_000],
    'Time after SIGTERM in which it accepts requests but is not ready, in ms.',
  ),

  // Database
  DATABASE_URL: optional(
    'PostgreSQL to use, one or more hosts. If unset: the embedded one in DATA_DIR.',
  ),
  DATA_DIR: text('.data', 'Folder of the embedded PostgreSQL.'),
  DATABASE_POOL_SIZE: integer(
    10,
    [1, 1000],
    'Maximum connections. One in ten is for large reads; 1 means one of each.',
  ),
  DATABASE_POOLER: flag(false, 'The service connects through PgBouncer in transaction mode.'),
  STATEMENT_TIMEOUT_MS: integer(
    5_000,
    [100, 600_000],
    'Maximum execution time of a statement, in ms. A request waits for a connection as long.',
  ),
  DATABASE_REPLICA_URL: optional(
    'Standbys to read from: URLs, or hosts within one URL, separated by commas.',
  ),

  // Load shedding
  ANSWER_MEMORY_MB: integer(
    288,
    [16, 65_536],
    'Maximum memory of unsent responses, in MiB. Further requests get 503.',
  ),
  MAX_REQUESTS: integer(1_000, [1, 1_000_000], 'Maximum requests in flight. Further ones get 503.'),

  TRUSTED_PROXIES: optional(
    'Addresses of proxies that send X-Forwarded-For, such as 10.0.0.1, 10.1.0.0/16.',
  ),

  // Authentication and quota
  AUTH_ISSUER: optional('Identity provider whose access tokens are accepted: their `iss`.'),
  AUTH_AUDIENCE: optional('Audience that these tokens need: their `aud`.'),
  AUTH_JWKS_URL: optional('URL of the keys of the identity provider: https, or this machine.'),
  AUTH_CLIENT_ID_CLAIM: optional(
    'Claim with the client id of the app. If unset: `client_id`, else `azp`.',
  ),
  RATE_LIMIT_PER_MINUTE: integer(
    0,
    [0, 10_000_000],
    'Maximum requests of an app per minute. 0: no limit.',
  ),
  REDIS_URL: optional('Redis that counts these requests. If unset: each instance counts its own.'),

  // Log, metrics and traces. OpenTelemetry's SDK reads all OTEL_ variables itself.
  METRICS_PORT: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 65_535,
      description: 'Port of the metrics and of further health checks. If unset: none.',
    }),
  ),
  METRICS_HOST: text('127.0.0.1', 'Address of this port. It needs no authentication.'),
  INSTANCES: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 1_000,
      description:
        'Number of instances that should run, for an alert. If unset: as many as before.',
    }),
  ),
  OTEL_EXPORTER_OTLP_ENDPOINT: optional('Collector of the traces. If unset: no traces.'),
  OTEL_SERVICE_NAME: text('investment-data-query-service', 'Name of the service in traces.'),
})

export type Config = Static<typeof Settings>
export const settings = Settings.properties

/** Settings of the operator. Compiling all costs 80 ms at the start of each command. */
export const operatorSettings = Type.Pick(Settings, ['DATABASE_URL', 'DATA_DIR', 'DATABASE_POOLER'])
export type OperatorConfig = Static<typeof operatorSettings>

const validators = new Map<TObject, ValidateFunction>()

/** @throws ConfigurationError with every error */
export function readConfig<Schema extends TObject = typeof Settings>(
  environment: NodeJS.ProcessEnv,
  schema: Schema = Settings as TObject as Schema,
): Static<Schema> {
  const isConfig = validators.get(schema) ?? ajv.compile(schema)
  validators.set(schema, isConfig)
  // Compose files and shells pass an unset variable as an empty string.
  const isRead = (name: string) => name in schema.properties
  const given = Object.entries(environment).filter(([name, value]) => value !== '' && isRead(name))
  const data: NodeJS.ProcessEnv = Object.fromEntries(given)
  const config: unknown = { ...data }
  const isValid = isConfig(config)
  const errors = [
    ...(isConfig.errors ?? []).map(describe),
    ...identityProviderErrors(data),
    ...pairErrors(data),
    ...ruleErrors(data),
  ]
  if (!isValid || errors.length > 0) throw new ConfigurationError(errors.join('\n'))
  return config as Static<Schema>
}

/** Converts settings to their types, adds defaults, and removes other variables. */
const ajv = new Ajv({
  allErrors: true,
  coerceTypes: true,
  removeAdditional: 'all',
  useDefaults: true,
  meta: false,
  validateSchema: false,
})

function describe({ instancePath, message, params: { allowedValues } }: ErrorObject): string {
  const reason = allowedValues ? `must be one of ${allowedValues.join(', ')}` : message
  return `${instancePath.slice(1)} ${reason}`
}

function identityProviderErrors(data: NodeJS.ProcessEnv): string[] {
  const required = ['AUTH_ISSUER', 'AUTH_AUDIENCE', 'AUTH_JWKS_URL']
  const missing = required.filter((name) => data[name] === undefined)
  const present = [...required, 'AUTH_CLIENT_ID_CLAIM'].find((name) => data[name] !== undefined)
  if (present === undefined || missing.length === 0) return []
  return [`${missing.join(' and ')} must be set too, because ${present} is set`]
}

function pairErrors(data: NodeJS.ProcessEnv): string[] {
  const errors: string[] = []
  const { PORT = '3000', METRICS_PORT, HOST = '127.0.0.1', METRICS_HOST = '127.0.0.1' } = data
  const isShared = [HOST, METRICS_HOST].some((host) => host === '0.0.0.0' || host === '::')
  if (METRICS_PORT === PORT && PORT !== '0' && (isShared || HOST === METRICS_HOST))
    errors.push('METRICS_PORT must be another port than PORT')
  return errors
}

/** Turns traces on. */
const TRACES = 'OTEL_EXPORTER_OTLP_ENDPOINT'

/** Settings of earlier releases, which have no effect. */
const REMOVED = [
  'CLIENT_STALL_MS',
  'DEMO_APP_TOKEN',
  'DEMO_CONNECTION_TOKEN',
  'DATABASE_GENERIC_PLANS',
  'DATABASE_PREPARE',
  'DATABASE_QUEUE',
  'DATABASE_WAIT_MS',
  'MAX_EVENT_LOOP_DELAY_MS',
  'MAX_SOCKETS',
  'REPLICA_MAX_LAG_MS',
  'REQUEST_TIMEOUT_MS',
  'SHUTDOWN_GRACE_MS',
  'WORKERS',
]

/** Returns warnings about variables that have no effect: removed settings, and names that differ by two letters at most. */
export function settingWarnings(environment: NodeJS.ProcessEnv): string[] {
  const names = Object.keys(settings)
  return Object.keys(environment).flatMap((name) => {
    if (names.includes(name.replace(/_FILE$/, ''))) return []
    if (name.startsWith('OTEL_'))
      return environment[TRACES] ? [] : [`${name} has no effect without ${TRACES}`]
    if (REMOVED.includes(name)) return [`${name} has no effect any more: see CHANGELOG.md`]
    const meant = name.length > 6 ? closestMatch(name, names, { maxDistance: 2 }) : undefined
    return meant ? [`${name} is no setting: did you mean ${meant}?`] : []
  })
}

/** Returns the problem of a value, in words that follow the name of its setting. */
type Rule = (value: string) => string | undefined

const urlLike =
  (pattern: RegExp, example: string): Rule =>
  (url) =>
    pattern.test(url) && URL.canParse(url) ? undefined : `must be a URL like ${example}`

/** Rules by setting. No message contains a URL, because URLs may contain passwords. */
const rules: Record<string, Rule> = {
  DATABASE_URL: (list) => serverUrlProblem(list, ['read-write', 'primary', 'any']),
  DATABASE_REPLICA_URL: (list) => serverUrlProblem(list),
  PUBLIC_URL: urlLike(
    /^https?:[/]{2}[^\s@?#{}]+$/i,
    'https://HOST/PATH, without user, password, query or fragment',
  ),
  CONTACT_URL: urlLike(/^https?:[/]{2}[^\s@]+$/i, 'https://HOST/PATH, without user or password'),
  TRUSTED_PROXIES: (list) =>
    list.split(',').every((network) => isNetwork(network.trim()))
      ? undefined
      : 'must be addresses or networks like 10.0.0.1, 10.1.0.0/16',
  DEMO_TOKENS: (tokens) =>
    /^[^\s,]+,[^\s,]+$/.test(tokens) ? undefined : 'must be APP_TOKEN,CONNECTION_TOKEN',
  REDIS_URL: urlLike(/^rediss?:/i, 'redis://HOST:6379'),
  AUTH_JWKS_URL: (text) => {
    const url = URL.parse(text)
    if (!url || !isTrustworthy(url)) return 'must be an https URL, or a URL of this machine'
    if (!url.username && !url.password) return undefined
    return 'must have no user and no password: fetch() rejects them'
  },
  OTEL_EXPORTER_OTLP_ENDPOINT: urlLike(/^https?:/i, 'http://HOST:4318'),
}

function ruleErrors(data: NodeJS.ProcessEnv): string[] {
  return Object.entries(rules).flatMap(([name, rule]) => {
    const { [name]: value } = data
    const problem = value === undefined ? undefined : rule(value)
    return problem === undefined ? [] : [`${name} ${problem}`]
  })
}

function isNetwork(text: string): boolean {
  const [address = '', prefix = '0'] = text.split('/')
  return isIP(address) > 0 && /^\d+$/.test(prefix) && Number(prefix) <= (isIPv4(address) ? 32 : 128)
}

/** An attacker on the network can replace keys that are sent over plain HTTP. */
function isTrustworthy({ protocol, hostname }: URL): boolean {
  if (protocol === 'https:') return true
  return protocol === 'http:' && /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)
}
