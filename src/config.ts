import { isIP } from 'node:net'
import { closestMatch } from 'leven'
import { OperatorError } from './operator-error.ts'
import { checkServerUrls } from './postgres/server-urls.ts'
import { LARGEST_LIMIT } from './schemas/list.ts'

/** The message of its error follows the name of the setting, and never has the value: URLs may contain passwords. */
type Parse<Value> = (value: string, environment: NodeJS.ProcessEnv) => Value

const valid =
  (isValid: (value: string) => boolean, message: string): Parse<string> =>
  (value) => {
    if (isValid(value)) return value
    throw new Error(message)
  }

const text = (byDefault: string) => ({ default: byDefault, parse: String })

const optional = (parse: Parse<string> = String) => {
  return { default: undefined as string | undefined, parse }
}

const choice = (byDefault: string, ...values: string[]) => {
  const parse = valid((value) => values.includes(value), `must be one of ${values.join(', ')}`)
  return { default: byDefault, enum: values, parse }
}

const flag = (byDefault: boolean) => {
  const { parse } = choice('', 'true', 'false')
  const parseFlag: Parse<boolean> = (value, environment) => parse(value, environment) === 'true'
  return { default: byDefault, parse: parseFlag }
}

const integer = <D extends number | undefined>(byDefault: D, minimum: number, maximum: number) => {
  const parse: Parse<number | D> = (value) => {
    const number = /^-?\d+$/.test(value) ? Number(value) : Number.NaN
    if (number >= minimum && number <= maximum) return number
    throw new Error(`must be an integer from ${minimum} to ${maximum}`)
  }
  return { default: byDefault as number | D, minimum, maximum, parse }
}

const url = (pattern: RegExp, example: string) =>
  optional(valid((url) => pattern.test(url) && URL.canParse(url), `must be a URL like ${example}`))

const WEB_URL = 'https://HOST/PATH, without user or password'

const PROXIES = valid(
  (list) =>
    list.split(',').every((each) => {
      const [, address = '', bits = '1'] = /^([^/]*)(?:[/](\d+))?$/.exec(each.trim()) ?? []
      return Number(bits) >= 1 && Number(bits) <= ({ 4: 32, 6: 128 }[isIP(address)] ?? 0)
    }),
  'must be addresses or networks like 10.0.0.1, 10.1.0.0/16',
)

const serverUrls = (targets?: string[]) =>
  optional((list, environment) => checkServerUrls(list, environment, targets))

/** Defaults and limits of settings by the name of their environment variable. docs/settings.md describes them. */
export const settings = {
  HOST: text('127.0.0.1'),
  PORT: integer(3000, 0, 65_535),
  LOG_LEVEL: choice('info', 'fatal', 'error', 'warn', 'info', 'debug', 'silent'),
  MAX_LIMIT: integer(10_000, 1_000, LARGEST_LIMIT),
  DOCS_PAGE: flag(true),
  // Clients append a path to it.
  PUBLIC_URL: url(/^https?:[/]{2}[^\s@{}?#]+$/i, `${WEB_URL}, without ? or #`),
  CONTACT_URL: url(/^https?:[/]{2}[^\s@{}]+$/i, WEB_URL),
  DEMO_TOKENS: optional(),
  SHUTDOWN_DELAY_MS: integer(3_000, 0, 600_000),

  DATABASE_URL: serverUrls(['read-write', 'primary', 'any']),
  DATA_DIR: text('.data'),
  DATABASE_POOL_SIZE: integer(10, 1, 1000),
  DATABASE_POOLER: flag(false),
  STATEMENT_TIMEOUT_MS: integer(5_000, 100, 600_000),
  DATABASE_REPLICA_URL: serverUrls(),

  ANSWER_MEMORY_MB: integer(288, 16, 65_536),
  MAX_REQUESTS: integer(1_000, 1, 1_000_000),
  TRUSTED_PROXIES: optional(PROXIES),

  AUTH_ISSUER: optional(),
  AUTH_AUDIENCE: optional(),
  // On the network, an attacker can replace keys that are sent over plain HTTP.
  AUTH_JWKS_URL: url(
    /^(https:[/]{2}|http:[/]{2}(localhost|127(\.\d+){3}|\[::1\])[:/])[^\s@\\]+$/i,
    'https://HOST/PATH, or http:// on this machine, without user or password',
  ),
  AUTH_CLIENT_ID_CLAIM: optional(),
  RATE_LIMIT_PER_MINUTE: integer(0, 0, 10_000_000),
  REDIS_URL: url(/^rediss?:/i, 'redis://HOST:6379'),

  METRICS_PORT: integer(undefined, 0, 65_535),
  METRICS_HOST: text('127.0.0.1'),
  INSTANCES: integer(undefined, 1, 1_000),
  COMMIT: optional(),
  // The SDK of OpenTelemetry reads all OTEL_ variables itself.
  OTEL_EXPORTER_OTLP_ENDPOINT: url(/^https?:/i, 'http://HOST:4318'),
  OTEL_SERVICE_NAME: text('investment-data-query-service'),
}

type Name = keyof typeof settings
export type Config = { [Key in Name]: (typeof settings)[Key]['default'] }
const names = Object.keys(settings) as Name[]

/** Reads the settings. @throws OperatorError with every error */
export function readConfig(environment: NodeJS.ProcessEnv): Config {
  const errors: string[] = []
  const settingOf = (name: Name) => {
    const { default: byDefault, parse } = settings[name]
    const value = environment[name]
    // Compose files and shells pass an unset variable as an empty string.
    if (!value) return byDefault
    try {
      return parse(value, environment)
    } catch (error) {
      errors.push(`${name} ${(error as Error).message}`)
      return value
    }
  }
  const config = Object.fromEntries(names.map((name) => [name, settingOf(name)])) as Config
  const provider = [config.AUTH_ISSUER, config.AUTH_AUDIENCE, config.AUTH_JWKS_URL]
  if (new Set(provider.map(Boolean)).size > 1)
    errors.push('AUTH_ISSUER, AUTH_AUDIENCE and AUTH_JWKS_URL must be set together')
  if (errors.length > 0) throw new OperatorError(errors.join('\n'))
  return config
}

/** Settings of earlier releases. */
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

/** Settings that need another one. */
const NEEDED: Record<string, Name> = {
  REDIS_URL: 'RATE_LIMIT_PER_MINUTE',
  AUTH_CLIENT_ID_CLAIM: 'AUTH_ISSUER',
  METRICS_HOST: 'METRICS_PORT',
  INSTANCES: 'METRICS_PORT',
  OTEL_SERVICE_NAME: 'OTEL_EXPORTER_OTLP_ENDPOINT',
}

/**
 * Returns warnings about variables without an effect: removed settings, those without a setting that they need, and
 * names that differ by two letters at most.
 */
export function settingWarnings(environment: NodeJS.ProcessEnv): string[] {
  return Object.keys(environment).flatMap((name) => {
    const setting = name.replace(/_FILE$/, '')
    const needed = NEEDED[setting]
    if (needed && environment[name] && !environment[needed])
      return [`${name} has no effect without ${needed}`]
    if (setting in settings) return []
    if (REMOVED.includes(name)) return [`${name} has no effect any more: see CHANGELOG.md`]
    const meant = name.length > 6 ? closestMatch(name, names, { maxDistance: 2 }) : undefined
    if (meant) return [`${name} is no setting: did you mean ${meant}?`]
    const isUnused = name.startsWith('OTEL_') && !environment.OTEL_EXPORTER_OTLP_ENDPOINT
    return isUnused ? [`${name} has no effect without OTEL_EXPORTER_OTLP_ENDPOINT`] : []
  })
}
